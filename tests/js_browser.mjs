/* js_browser.mjs - js_checks.mjs in a page or in a worker; env.json, the package and golden files come from the same server */
import { run } from "./js_checks.mjs";

export async function all() {
  const env = await (await fetch("/env.json")).json();
  env.bloomery = await import("/js/bloomery.js");
  env.all = await env.bloomery.load({ kinds: "all" });
  env.common = await env.bloomery.load();
  env.golden = {};
  for (const name of env.names) env.golden[name] = new Uint8Array(await (await fetch(`/golden/${name}`)).arrayBuffer());
  for (const v of env.vectors) v.bytes = Uint8Array.from(atob(v.bytes), (c) => c.charCodeAt(0));
  env.calls = 1000;
  return run(env);
}
if (typeof WorkerGlobalScope !== "undefined") onmessage = async () => postMessage(await all());
