/*
 * reasons.js - why something was refused, in the page's language
 *
 * The library says it in English. What a page can make it say is told in German here; a
 * sentence that nobody has translated is quoted as what it is.
 */
const GERMAN = [
  [/^items: '(.*)' is no/, "„$1“ ist keine brauchbare Zahl von Schlüsseln, etwa 20.000."],
  [/^the number of items is missing/, "Die Zahl der geplanten Schlüssel fehlt; nötig ist mindestens 1."],
  [/^fpr: '(.*)' is no/, "„$1“ ist keine brauchbare Rate, etwa 0,01 oder 1 %."],
  [/^a rate is between 0 and 1, not (.*)$/, "Eine Rate liegt zwischen 0 und 1; $1 geht nicht."],
  [/^a rate of (\S+) is below what .* ask for (\S+) or more$/, "Die Rate $1 ist kleiner, als Hashwerte von 64 Bit sie unterscheiden können; möglich ist sie ab $2."],
  [/^the filter is full with (\d+) fingerprints/, "Der Filter ist voll: Mehr als $1 Fingerabdrücke passen nicht hinein. Plane ihn für mehr Schlüssel."],
  [/^--hash '(.*)' cannot be understood/, "Die Hashfunktion „$1“ ist nicht zu verstehen. Möglich sind ganze Zahlen, x, + - * ^ und Klammern."],
  [/^the hash functions are too long$/, "Die Hashfunktionen sind zu lang."],
  [/^more than 1000 steps/, "Mehr als 1000 Schritte kann niemand verfolgen."],
  [/^a ring to look at has ids of 3 to 16 bits$/, "Die Kennungen des Rings haben 3 bis 16 Bit."],
  [/^a ring that is shown has 1 to (\d+) members$/, "Der Ring hat 1 bis $1 Mitglieder."],
  [/^(\d+) has more than (\d+) bits/, "Die Kennung $1 hat mehr als $2 Bit."],
  [/^a sketch has 1 to (\d+) components, not (.*)$/, "Eine Skizze hat 1 bis $1 Komponenten; $2 geht nicht."],
  [/^not a \.bly file/, "Das ist weder eine .bly-Datei noch ein Filter eines Systems, das diese Seite kennt."],
  [/^cut short: it has (\d+) bytes and needs at least (\d+)/, "Die Datei ist abgeschnitten: Sie hat $1 Bytes und braucht mindestens $2. Kopiere sie noch einmal."],
  [/^a key has half of a surrogate pair/, "Der Schlüssel enthält ein halbes Zeichen, das sich nicht in UTF-8 schreiben lässt."],
  [/^out of memory/, "Der Speicher reicht nicht."],
];

export function reasonIn(lang, { message, status }) {
  if (lang !== "de") return message;
  for (const [pattern, german] of GERMAN) {
    const found = pattern.exec(message);
    if (found) return german.replace(/\$(\d)/g, (_, i) => (/^-?\d*\.\d+/.test(found[i]) ? found[i].replace(".", ",") : found[i]));
  }
  return !status ? message /* the page's own */ : `Die Bibliothek lehnt das ab und sagt auf Englisch: „${message}“`;
}
