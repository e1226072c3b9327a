// `node proof/attacks/approvals.mjs [--kills N] [--seed N]`: calls that a person must agree to, in five revisions over HTTP, stdio and
// attach; and a gateway that is killed between question, answer and call. The server behind it counts: what nobody agreed to was not
// called, and what somebody agreed to was called at most once. The kinds of tampering are in
// packages/junctor/src/approvals/with-approval.test.ts, a hundred times each.

import { parseArgs } from "node:util";
import { loadTypeScript } from "../../scripts/load-typescript.mjs";
import { setup } from "../../scripts/setup.mjs";

const options = { kills: { type: "string", default: "30" }, seed: { type: "string", default: "7" } };
const { values } = parseArgs({ options });
setup();
const { proveApprovals } = await loadTypeScript("test/once/prove-approvals.ts");
const isProven = await proveApprovals({ kills: Number(values.kills), seed: Number(values.seed) });
process.exit(isProven ? 0 : 1);
