/* js_node.mjs PACKAGE ENV.json [simd|plain] - run js_checks.mjs in Node, print the failures as JSON */
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { run } from "./js_checks.mjs";

const [folder, given, form] = process.argv.slice(2);
const bloomery = await import(pathToFileURL(`${folder}/bloomery.js`));
const env = JSON.parse(readFileSync(given, "utf8"));
const simd = form === "simd";
env.bloomery = bloomery;
env.all = await bloomery.load({ kinds: "all", simd });
env.common = await bloomery.load({ simd });
env.golden = Object.fromEntries(readdirSync(env.folder).filter((n) => n.endsWith(".bly")).map((n) => [n, new Uint8Array(readFileSync(`${env.folder}/${n}`))]));
for (const v of env.vectors) v.bytes = Uint8Array.from(Buffer.from(v.bytes, "base64"));
console.log(JSON.stringify(await run(env)));
