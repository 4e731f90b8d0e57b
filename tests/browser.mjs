/*
 * browser.mjs PLAYWRIGHT CHROMIUM URL ENV.json PICTURES - the playground and the package in a real Chromium
 *
 * Prints { name: failure or "" } as JSON. PICTURES is a folder for screenshots, or "".
 */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [playwright, program, url, given, pictures] = process.argv.slice(2);
const { chromium } = (await import(`file://${playwright}/node_modules/playwright-core/index.mjs`)).default ?? (await import(`file://${playwright}/node_modules/playwright-core/index.mjs`));
const env = JSON.parse(readFileSync(given, "utf8"));
const home = mkdtempSync(join(tmpdir(), "bly-browser-"));
const context = await chromium.launchPersistentContext(home, {
  executablePath: program, headless: true, viewport: { width: 1100, height: 900 }, locale: "en-GB", acceptDownloads: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const PATIENCE = 600000; // ms until something that was waited for is missed, however busy the machine is
const results = {};
const complaints = [], outside = [];
let sent = 0;
const page = await context.newPage();
page.setDefaultTimeout(PATIENCE);
const watch = (p) => {
  p.on("console", (m) => m.type() === "error" && complaints.push(m.text()));
  p.on("pageerror", (e) => complaints.push(String(e)));
  p.on("request", (r) => !r.url().startsWith(url) && !r.url().startsWith("blob:") && outside.push(r.url()));
};
watch(page);
const assert = (ok, what) => {
  if (!ok) throw new Error(what);
};
const open = async (hash) => {
  await page.goto(`${url}#${hash}`);
  await page.reload();
  await page.waitForSelector("html[data-ready=yes]");
};
// The same without loading the page anew.
const turn = (hash) =>
  page.evaluate((to) => new Promise((done) => {
    addEventListener("hashchange", () => done(), { once: true });
    location.hash = `${to}${to.includes("?") ? "&" : "?"}turn=${Math.random()}`;
  }), hash);
// Not waitForFunction(), which evaluates text in the page: its policy forbids that.
const until = async (is, arg) => {
  for (const end = Date.now() + PATIENCE; !(await page.evaluate(is, arg).catch(() => false)); await page.waitForTimeout(50)) assert(Date.now() < end, `never: ${is}; the page says: ${await text("#status")}`);
};
const text = (selector) => page.textContent(selector);
const picture = async (name) => {
  if (!pictures) return;
  await page.waitForTimeout(300); // colours change slowly
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
};
const check = async (name, run) => {
  try {
    await run();
    results[name] = "";
  } catch (error) {
    results[name] = String(error?.stack ?? error);
    if (pictures) await picture(`failed-${name}`);
  }
};

await check("first_paint_and_bytes", async () => {
  page.on("response", async (r) => {
    const sizes = await r.request().sizes().catch(() => null);
    if (sizes) sent += sizes.responseBodySize + sizes.responseHeadersSize;
  });
  await page.goto(`${url}#see?kind=classic&ops=%2Bant,?bee`);
  await page.waitForSelector("html[data-ready=yes]");
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  results.paint = paint;
  await page.waitForTimeout(200);
  results.sent = sent;
  assert(sent > 0 && sent < 300000, `${sent} bytes were sent`);
});

await check("see_real_filter", async () => {
  await open("see?kind=classic&items=8&fpr=0.1");
  for (const key of ["ant", "bee"]) {
    await page.fill("#key", key);
    await page.click("button[value='+']");
  }
  await page.fill("#key", "cat");
  await page.click("button[value='?']");
  assert((await page.locator("#steps li").count()) === 3, "three steps");
  assert((await text("#steps li:nth-child(3)")).startsWith("cat: no, certainly"), await text("#steps"));
  assert((await page.locator("#keys button").count()) === 2, "two keys");
  assert((await page.locator(".cells i.on").count()) > 3, "cells are lit");
  assert(page.url().includes("ops="), "the URL has the state");
  await page.reload();
  await page.waitForSelector("#steps li:nth-child(3)");
  await picture("see-light");
});

await check("see_every_kind", async () => {
  await open("see?kind=classic&ops=%2Bant,%2Bbee,?ant,?zebra");
  const kinds = await page.$$eval("#kind option", (all) => all.map((o) => o.value).filter(Boolean));
  assert(kinds.length > 20, kinds.join());
  for (const kind of kinds) {
    await page.goto(`${url}#see?kind=${kind}&ops=%2Bant,%2Bbee,?ant,?zebra`);
    await until((k) => document.querySelector("#kind")?.value === k, kind);
    assert(!(await page.getAttribute("#status", "class"))?.includes("bad"), `${kind}: ${await text("#status")}`);
    assert((await page.locator(".cells i").count()) > 0, `${kind} shows no cells`);
  }
});

await check("the_first_view_plays", async () => {
  await open("see?lang=en");
  assert((await text("#where")).includes("of 10") && (await page.locator(".cells i").count()) === 35, await text("#where"));
  assert((await page.$$eval(".cells small", (all) => all.map((e) => e.textContent).join())) === Array.from({ length: 35 }, (_, i) => i).join(), "every cell has its number");
  await until(() => document.querySelectorAll("#steps li").length >= 2); // by itself
  await page.click("#play"); // which is a pause now
  const at = await text("#where");
  await page.click("#play-next");
  assert((await text("#where")) !== at, "one step more");
  await page.click("#play-first");
  assert((await page.locator(".cells i.on").count()) === 0 && (await page.isDisabled("#play-back")), "at the beginning");
  await page.click("#play-last");
  assert((await text("#answer")).startsWith("Mayday: maybe, but it was never added"), await text("#answer"));
  const [key, answer] = [await page.locator("#key").boundingBox(), await page.locator("#answer").boundingBox()];
  assert(answer.y < key.y + key.height + 20 && answer.y + answer.height > key.y - 20, "the answer is beside the question");
  await page.click("#keys button");
  assert((await page.locator(".cells i.hit").count()) === 3 && (await page.getAttribute("#keys button", "aria-pressed")) === "true", "the cells of a key");
  await picture("see-first");
});

await check("links_typed_by_hand", async () => {
  await open("see?kind=counting&items=6&ops=+the,+cat,+the,?hat");
  assert((await page.$$eval("#keys button", (all) => all.map((b) => b.textContent).join())) === "the ×2,cat", await text("#keys"));
  await open("see?toy=1&m=10&h=x+3;3x+1&ops=+2,?4");
  assert((await page.inputValue("#h")) === "x+3;3x+1" && (await text("#steps")).includes("cells 5, 7"), await text("#steps"));
  await open("see?kind=classic&ops=+100%,?100%,?%25,+%2B");
  assert((await page.$$eval("#keys button", (all) => all.map((b) => b.textContent).join())) === "100%,+", await text("#keys"));
  await page.fill("#key", "50 % of a+b, c&d=#");
  await page.click("button[value='+']");
  await open(page.url().split("#")[1]);
  assert((await text("#keys li:last-child")) === "50 % of a+b, c&d=#", await text("#keys"));
  // Old links wrote blanks in texts as pluses.
  await open("alike?a=one+two%2Bthree&b=one");
  assert((await page.inputValue("#a")) === "one two+three", await page.inputValue("#a"));
  for (const odd of ["constructor?x", "toString", "see?kind=nosuch&items=%&fpr=%%&ops=%,+%", "see?toy=1&m=-3&ops=+2", "tour?at=99", "tour?at=x", "plan?show=no,%&n=x", "measure?items=%zz&kind=%", "alike?members=%&bits=99"]) {
    await open(odd);
    assert(await page.isVisible("#panel .lead, #panel #scene"), `${odd}: nothing to see`);
    await page.click("#tab-plan");
    await page.waitForSelector("#rows tr");
  }
});

await check("as_many_cells_as_the_filter_has", async () => {
  for (const [link, cells] of [["kind=classic&items=4&fpr=0.3&ops=+ant", 11], ["kind=cuckoo&items=20&fpr=0.05&ops=+ant", 32], ["kind=counting&items=7&fpr=0.1&ops=+ant", 36], ["kind=countmin&items=8&fpr=0.1&ops=+ant", 42], ["kind=scalable&items=7&fpr=0.1&layer=classic&ops=+ant", 70], ["kind=attenuated&items=10&ops=+ant", 4 * 79]]) {
    await open(`see?${link}`);
    const found = await page.locator(".cells i").count();
    assert(found === cells, `${link}: ${found} cells`);
  }
  await open("see?kind=classic&items=1000000&ops=+ant");
  assert((await text("#status")).includes("too many for a page"), await text("#status"));
});

await check("numbers_that_do_not_fit", async () => {
  await open("see?toy=1&m=10&h=x&ops=+2");
  for (const [key, says] of [["18446744073709551616", "2^64 - 1"], ["99999999999999999999999", "2^64 - 1"], ["-1", "not a whole"]]) {
    await page.fill("#key", key);
    await page.click("button[value='+']");
    assert((await text("#status")).includes(says) && (await page.locator("#steps li").count()) === 1, `${key}: ${await text("#status")}`);
  }
  await page.fill("#key", "18446744073709551615");
  await page.click("button[value='+']");
  assert((await text("#steps li:last-child")).includes("cells 5."), await text("#steps"));
  await page.fill("#m", "4294967306");
  await page.press("#m", "Enter");
  await page.focus("#key");
  assert((await text("#status")).includes("1 to 1000"), await text("#status"));
});

await check("step_numbers_are_whole", async () => {
  await open(`see?kind=classic&items=200&ops=${Array.from({ length: 120 }, (_, i) => `+k${i}`).join()}`);
  const room = await page.$eval("#steps", (e) => parseFloat(getComputedStyle(e).paddingLeft) / parseFloat(getComputedStyle(e).fontSize));
  assert(room >= 2.5, `${room} em for 120.`);
});

for (const lang of ["en", "de"])
  await check(`tour_${lang}`, async () => {
    await open(`tour?lang=${lang}`);
    const seen = new Set();
    for (let i = 1; ; i++) {
      const title = await text("#scene"), words = `${title} ${await text("#say")}`;
      assert(!seen.has(title) && !/[{}]|undefined|NaN/.test(words), words);
      seen.add(title);
      // Cells, and an answer that fits what the scene says.
      assert((await page.locator("#cells .cells").count()) >= 1, title);
      await picture(`tour-${lang}-${i}`);
      if (i === 5) await until(() => document.querySelector("#answer .no"));
      if (i === 7) await until(() => document.querySelector("#answer .wrong"));
      if (i === 11) await until(() => document.querySelector("#answer .no"));
      if (i === 13) {
        await until(() => document.querySelectorAll("#cells .cells").length === 2);
        assert(!(await page.locator("#cells .cells.many").count()) && (await page.locator("#cells small").count()) === 70 + 138, "each cell of both layers has its number");
      }
      if (i === 14) break;
      await page.keyboard.press(i % 2 ? "PageDown" : "ArrowRight"); // as a presenter's remote control does
      await until((before) => document.querySelector("#scene").textContent !== before, title);
    }
    assert(seen.size === 14 && page.url().includes("at=14"), page.url());
    await page.click("#back");
    await turn(`tour?at=13&lang=${lang}`);
    await page.click("#try");
    await page.waitForSelector("#steps li:nth-child(21)");
    assert((await page.locator(".cells i").count()) === 70 + 138, "the filter of the scene");
    await turn(`tour?at=12&lang=${lang}`);
    await page.click("#try");
    await page.waitForSelector("#steps li:nth-child(21)");
    await open("see?lang=en");
  });

await check("errors_in_german", async () => {
  await open("see?lang=de");
  const english = /\b(the|is|are|not|no|has|have|with|of|and|right|out|value)\b/;
  const says = async (what) => {
    const said = await text("#status");
    assert(said && !english.test(said), `${what}: ${said}`);
  };
  for (const [field, value] of [["items", "abc"], ["items", "0"], ["items", "99999999999999999999999"], ["items", "1.000.000"], ["fpr", "2"], ["fpr", "x"], ["fpr", "1e-40"]]) {
    await turn("see?kind=classic&ops=+ant&lang=de");
    await page.fill(`#${field}`, value);
    await page.press(`#${field}`, "Enter");
    await page.focus("#key");
    await until(() => document.querySelector("#status").textContent);
    await says(`${field} ${value}`);
  }
  await turn(`see?kind=cuckoo&items=4&lang=de&ops=${Array.from({ length: 40 }, (_, i) => `+k${i}`).join()}`);
  await says("full");
  for (const [h, key] of [["x+", "3"], ["y", "3"], ["", "3"], ["x", "nichts"], ["x", "99999999999999999999"]]) {
    await turn("see?toy=1&m=10&h=x&lang=de");
    await page.fill("#h", h);
    await page.fill("#key", key);
    await page.click("button[value='+']");
    await says(`${h} ${key}`);
  }
  await turn("alike?lang=de");
  for (const [field, value] of [["members", "3 x"], ["members", "99"], ["members", ""], ["bits", "2"], ["k", "9999"]]) {
    await page.fill(`#${field}`, value);
    await says(`${field} ${value}`);
  }
  await turn("file?lang=de");
  for (const buffer of [Buffer.from("kein Filter"), readFileSync(join(env.folder, "classic.bly")).subarray(0, 200)]) {
    await page.setInputFiles("#pick", { name: "falsch.bly", mimeType: "x/y", buffer });
    await until(() => document.querySelector("#status").textContent.startsWith("falsch.bly lässt sich nicht"));
    await says("file");
  }
  await open("see?lang=en");
});

await check("see_blackboard", async () => {
  await open("see");
  await page.click("[data-example='1']");
  await page.waitForSelector("#board, #h");
  await page.click("#play-last");
  await page.waitForSelector("#steps li:nth-child(6)");
  const steps = await page.$$eval("#steps li", (all) => all.map((li) => li.textContent));
  assert(steps[4].includes("7: no") && steps[5].includes("false positive") && steps[5].includes("belongs to"), steps.join(" | "));
  await picture("see-blackboard");
  await page.fill("#key", "nonsense");
  await page.click("button[value='+']");
  assert((await text("#status")).includes("nonsense"), "a wrong key is named");
  assert((await page.locator("#steps li").count()) === 6, "and taken back");
});

await check("see_false_positive_has_owners", async () => {
  await open("see");
  await page.click("[data-example='4']");
  await until(() => document.querySelector("#items").value === "4");
  await page.click("#play-last");
  await page.waitForSelector("#steps li:nth-child(13)");
  assert((await text("#steps")).includes("belongs to"), await text("#steps"));
});

await check("plan", async () => {
  await open("plan");
  const rows = await page.locator("#rows tr").count();
  assert(rows > 20 && (await page.locator("#chart polyline").count()) === rows + 1, `${rows} rows`);
  const before = await text("#rows tr:first-child");
  await page.fill("#p", "4");
  assert((await text("#rows tr:first-child")) !== before && page.url().includes("p=4"), "the slider changes it");
  const told = env.plans.find((k) => k.kind === "blocked");
  await open("plan?n=3&p=2");
  assert((await text("#rows tr:first-child td:nth-child(2)")) === String(Number(told.bits_per_key.toPrecision(3))), await text("#rows tr:first-child"));
  await page.selectOption("#by", "memory");
  assert(await page.isVisible("#b"), "memory has its slider");
  // About five lines have a name and a dash of their own, the others are grey.
  const ends = () => page.$$eval("#chart text.end", (all) => all.map((e) => e.textContent).sort().join());
  assert((await ends()) === "blocked,classic,cuckoo,fuse,lower bound,ribbon", await ends());
  const looks = await page.$$eval("#chart polyline:not(.dim)", (all) => all.map((e) => e.getAttribute("stroke-dasharray")));
  assert(new Set(looks).size === 6 && (await page.locator("#chart polyline.dim").count()) === rows - 5, looks.join(" | "));
  // The rates of a column have one unit.
  for (const p of ["2", "3", "5"]) {
    await open(`plan?p=${p}`);
    const rates = (await page.$$eval("#rows td[data-label='False positives']", (all) => all.map((e) => e.textContent))).filter((r) => r !== "–");
    assert(rates.length > 15 && new Set(rates.map((r) => r.endsWith(" %"))).size === 1, `10^-${p}: ${rates}`);
  }
  await page.uncheck("[data-kind=fuse]");
  await page.check("[data-kind=xor]");
  assert((await ends()) === "blocked,classic,cuckoo,lower bound,ribbon,xor" && /show=[^&]*xor/.test(page.url()), page.url());
  await picture("plan-light");
});

await check("measure", async () => {
  await open("measure?kind=blocked&items=2000&fpr=0.01");
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
  assert((await page.locator("#rates circle").count()) >= 30, "points");
  const ticks = await page.$$eval("#rates text[text-anchor=end]", (all) => all.map((e) => parseFloat(e.textContent)));
  assert(ticks.length === 5 && ticks.every((v, i) => Math.abs(v - i * ticks[1]) < 1e-9) && [1, 2, 2.5, 5].includes(Number((ticks[1] / 10 ** Math.floor(Math.log10(ticks[1]))).toFixed(6))), `round numbers: ${ticks}`);
  await picture("measure-light");
  await page.goto(`${url}#measure?kind=cuckoo&items=2000&fpr=0.01`);
  await until(() => document.querySelector("#status").textContent.startsWith("Full at"));
  // A kind that is built from values.
  await page.goto(`${url}#measure?kind=bloomier&items=500&fpr=0.01`);
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
  await page.goto(`${url}#measure?kind=scalable&items=500&fpr=0.01`);
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
  assert(!(await text("#layers")).includes("Layers: 1 "), await text("#layers"));
});

await check("a_worker_that_is_ended", async () => {
  await open("measure?kind=blocked&items=3000000&fpr=0.01");
  await page.click("#stop");
  await until(() => document.querySelector("#status").textContent.startsWith("Stopped"));
  await page.fill("#items", "1000");
  await page.click("#start");
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
});

await check("a_worker_that_ends_by_itself", async () => {
  // It is gone in the middle of a job, and nothing tells the page: no message, no error.
  await page.route("**/worker.js", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: (await answer.text()).replace("async open({ file }) {", "async open({ file }) { self.close(); await new Promise(() => {});") });
  });
  try {
    await open("file");
    await page.setInputFiles("#pick", join(env.folder, "blocked.bly"));
    await until(() => document.querySelector("#status").textContent.includes("The worker ended"));
  } finally {
    await page.unroute("**/worker.js");
  }
  await page.setInputFiles("#pick", join(env.folder, "classic.bly"));
  await page.waitForSelector("#info tr");
  assert((await text("#name")) === "classic.bly: classic", await text("#name"));
});

await check("file", async () => {
  await open("file");
  await page.setInputFiles("#pick", join(env.folder, "blocked.bly"));
  await page.waitForSelector("#info tr");
  assert((await text("#name")) === "blocked.bly: blocked", await text("#name"));
  for (const [key, word] of [["key-7", "maybe"], ["mallory-is-absent", "no"]]) {
    await page.fill("#key", key);
    await page.click("#ask button");
    await until((want) => document.querySelector("#answer").textContent === want, `${key}: ${word}`);
  }
  await page.setInputFiles("#text", { name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("ant\nbee\ncat\n") });
  await page.waitForSelector("#save:not([hidden])");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  await download.saveAs(join(home, "saved.bly"));
  writeFileSync(`${given}.saved.bly`, readFileSync(join(home, "saved.bly")));
  assert((await text("#answer")) === "", "the answer of the file before is still there");
  await picture("file-light");
  if (env.foreign) {
    await page.setInputFiles("#pick", env.foreign);
    await until(() => document.querySelector("#name").textContent.includes("a filter of"));
    await page.fill("#key", "ant");
    await page.click("#ask button");
    await until(() => document.querySelector("#answer").textContent === "ant: maybe");
  }
  await page.setInputFiles("#pick", { name: "bad.bly", mimeType: "x/y", buffer: Buffer.from("no filter at all") });
  await until(() => document.querySelector("#status").textContent.startsWith("bad.bly cannot be opened"));
});

await check("a_file_of_2_gigabytes", async () => {
  await open("file");
  writeFileSync(`${given}.huge`, "");
  truncateSync(`${given}.huge`, 2 ** 31); // of which the disk holds nothing
  const says = () => until(() => /2\.15 GB.*bloomery info/.test(document.querySelector("#status").textContent));
  await page.setInputFiles("#pick", `${given}.huge`);
  await says();
  await page.setInputFiles("#text", `${given}.huge`);
  await says();
  await page.evaluate(() => {
    document.querySelector("#status").textContent = "";
    const event = new Event("drop", { cancelable: true });
    event.dataTransfer = { files: document.querySelector("#pick").files };
    document.querySelector("#drop").dispatchEvent(event);
  });
  await says();
  await page.setInputFiles("#pick", join(env.folder, "classic.bly"));
  await page.waitForSelector("#info tr");
});

await check("likeness_and_rings", async () => {
  await open("alike");
  assert((await text("#result")).includes("J ="), await text("#result"));
  assert((await text("#way")) === "3 asks for 45: 3 → 41 → 46; 46 owns it.", await text("#way"));
  await picture("alike-light");
  await page.fill("#b", await page.inputValue("#a"));
  assert((await text("#result")).includes("J = 1"), await text("#result"));
  await page.fill("#members", "3 nonsense");
  assert((await text("#status")).includes("nonsense"), await text("#status"));
});

await check("keyboard", async () => {
  await open("see");
  await page.focus("#tab-see");
  await page.keyboard.press("ArrowRight");
  await until(() => document.activeElement.id === "tab-tour" && location.hash.startsWith("#tour"));
  await page.keyboard.press("ArrowRight");
  await until(() => document.activeElement.id === "tab-plan" && location.hash.startsWith("#plan"));
  await page.keyboard.press("End");
  await until(() => location.hash.startsWith("#alike"));
  await open("see?kind=counting");
  await page.focus("#key");
  await page.keyboard.type("ant");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#steps li");
});

await check("names_for_a_screen_reader", async () => {
  for (const panel of ["see?kind=classic&ops=%2Bant", "tour?at=7", "plan", "measure", "file", "alike"]) {
    await open(panel);
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, textarea, canvas, svg[role=img], .cells")]
        .filter((e) => !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim()))
        .map((e) => e.outerHTML.slice(0, 80)));
    assert(!nameless.length, `${panel}: ${nameless.join(" ")}`);
    assert((await page.getAttribute("#panel", "aria-labelledby")) === `tab-${panel.split("?")[0]}`, panel);
  }
});

await check("german_and_dark", async () => {
  await open("see?kind=classic&ops=%2Bant,?bee");
  await page.click("#language");
  await until(() => document.documentElement.lang === "de");
  assert((await text("#tab-plan")) === "Planen" && page.url().includes("lang=de"), await text("#tab-plan"));
  assert((await text("#summary")).includes("Maßstab") && (await page.getAttribute("#summary", "lang")) === "de", await text("#summary"));
  await picture("see-german");
  await page.click("#theme");
  assert((await page.getAttribute("html", "data-theme")) === "dark", "dark");
  await picture("see-dark-german");
  for (const panel of ["plan", "measure", "file", "alike"]) {
    await open(`${panel}?lang=de`);
    await picture(`${panel}-dark-german`);
  }
  await open("see?lang=de&kind=classic&items=20000&fpr=0.125");
  assert((await page.inputValue("#items")) === "20.000" && (await page.inputValue("#fpr")) === "0,125", await page.inputValue("#fpr"));
  // Numbers as they are typed in German; the address has them as the library reads them.
  await open("measure?lang=de&kind=classic");
  await page.fill("#items", "1.000");
  await page.fill("#fpr", "0,1");
  await page.click("#start");
  await until(() => document.getElementById("status").textContent.startsWith("Fertig: 2.000"));
  assert(/items=1000&fpr=0.1/.test(page.url()), page.url());
  // A kind that nobody has translated yet.
  await page.evaluate(async () => delete (await import("./words.js")).words.de.kinds.cuckoo);
  await page.evaluate(() => (location.hash = "#see?kind=cuckoo&lang=de"));
  await until(() => document.getElementById("summary")?.lang === "en");
  assert((await text("#summary")).startsWith("fingerprints"), await text("#summary"));
  await open("see?lang=en");
  await page.click("#theme");
});

for (const width of [320, 360])
  await check(`phone_${width}`, async () => {
    await page.setViewportSize({ width, height: 640 });
    await open("see");
    for (const lang of ["en", "de"])
      for (const panel of ["see?", "see?kind=blocked&ops=%2Bant,%2Bbee,?cat&", "tour?at=7&", "tour?at=13&", "plan?", "measure?items=1000&", "file?", "alike?"]) {
        await turn(`${panel}lang=${lang}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert(wide <= width, `${panel} is ${wide} wide`);
        const tab = await page.locator("[aria-selected=true]").boundingBox();
        assert(tab.x >= 0 && tab.x + tab.width <= width + 1, `${panel}: its tab is out of sight`);
        const small = await page.$$eval("svg.chart text", (all) => all.map((e) => e.getBoundingClientRect().height).filter((h) => h > 0 && h < 9));
        assert(!small.length, `${panel}: words of ${small[0]} pixels`);
        const cut = await page.$$eval("main button, main td, main th, main input, main select, main .cells, main .answer", (all, w) => all.filter((e) => e.getBoundingClientRect().width && e.getBoundingClientRect().right > w).map((e) => e.outerHTML.slice(0, 80)), width);
        assert(!cut.length, `${panel}: cut off: ${cut[0]}`);
        await picture(`phone-${width}-${lang}-${panel.split("?")[0]}`);
      }
    for (const lang of ["en", "de"]) {
      await open(`see?lang=${lang}`);
      const cells = await page.locator(".cells").boundingBox();
      assert(cells.y + 45 < 640, `${lang}: the cells begin at ${cells.y}`);
    }
    await page.setViewportSize({ width: 1100, height: 900 });
    await open("see?lang=en");
  });

await check("without_simd", async () => {
  const other = await context.newPage();
  watch(other);
  await other.addInitScript(() => (WebAssembly.validate = () => false));
  await other.goto(`${url}#see?kind=classic&ops=%2Bant`);
  await other.waitForSelector("#steps li");
  assert((await other.textContent("#status")) === "" || (await other.textContent("#status")).includes("SIMD"), "it says so");
  await other.close();
});

await check("nothing_from_outside", async () => assert(!outside.length, outside.join(" ")));
await check("no_complaint_on_the_console", async () => assert(!complaints.length, complaints.join("\n")));

/* The package itself, in a page and in a worker of another server. */
if (env.package) {
  await check("package_in_page_and_worker", async () => {
    const other = await context.newPage();
    other.setDefaultTimeout(PATIENCE);
    await other.goto(`${env.package}/tests/js_page.html`);
    for (const where of ["page", "worker"]) {
      const result = await other.evaluate((w) => window.run(w), where);
      for (const [name, failure] of Object.entries(result)) results[`${where}: ${name}`] = failure;
    }
    await other.close();
  });
}
console.log(JSON.stringify(results));
await context.close();
rmSync(home, { recursive: true, force: true });
