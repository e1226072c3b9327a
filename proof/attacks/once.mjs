// `node proof/attacks/once.mjs [--keys N] [--seed N]`: connections cut at every phase of a call, and retries over three replicas while
// replicas and Redis are killed. The server behind them counts: it must have charged each order once whose call was sent.

import { parseArgs } from "node:util";
import { loadTypeScript } from "../../scripts/load-typescript.mjs";
import { setup } from "../../scripts/setup.mjs";

const options = { keys: { type: "string", default: "2000" }, seed: { type: "string", default: "7" } };
const { values } = parseArgs({ options });
setup();
const { proveOnce } = await loadTypeScript("test/once/prove.ts");
const isProven = await proveOnce({ keys: Number(values.keys), seed: Number(values.seed) });
process.exit(isProven ? 0 : 1);
