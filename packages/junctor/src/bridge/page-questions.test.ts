import { expect, test } from "vitest";
import { RpcError, ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { ClientCapabilities } from "../../../core/src/mcp/types.ts";
import { toPageQuestions, unwrapState } from "./parking.ts";

const canVisit = { elicitation: { url: {} } };
const refused = (elicitations: unknown): RpcError =>
  new RpcError("rpc.other", "Visit first", { rpcCode: -32042, data: { elicitations } });
const pages = [
  { mode: "url", message: "Sign in", url: "https://example.com/in", elicitationId: "e1" },
  { mode: "url", message: "Pay", url: "https://example.com/pay", elicitationId: "e2" },
];

test("each page a server wants visited becomes a question, without what names the visit on its hop", () => {
  const visits = toPageQuestions(refused(pages), canVisit, "shop");
  expect(visits?.asks).toEqual({
    "visit-1": {
      method: "elicitation/create",
      params: { mode: "url", message: "Sign in", url: "https://example.com/in" },
    },
    "visit-2": {
      method: "elicitation/create",
      params: { mode: "url", message: "Pay", url: "https://example.com/pay" },
    },
  });
});

test("the retry makes the request again", () => {
  const visits = toPageQuestions(refused(pages), canVisit, "shop");
  const answers = { "visit-1": RawJson.fromValue({ action: "accept" }) };
  expect(unwrapState({ answers, state: visits?.state }, "shop")).toBeUndefined();
});

test.each(["decline", "cancel"])("a user who says %s is not asked again", (action) => {
  const visits = toPageQuestions(refused(pages), canVisit, "shop");
  const answers = {
    "visit-1": RawJson.fromValue({ action: "accept" }),
    "visit-2": RawJson.fromValue({ action }),
  };
  expect(() => unwrapState({ answers, state: visits?.state }, "shop")).toThrow(ToolError);
});

test.each<[string, unknown, ClientCapabilities]>([
  ["another error", new RpcError("rpc.internal", "x"), canVisit],
  ["what is not an error of a server", new Error("x"), canVisit],
  ["no pages", refused([]), canVisit],
  ["pages that are not a list", refused("x"), canVisit],
  ["pages that are nothing", refused([null, 7]), canVisit],
  ["a caller that cannot visit pages", refused(pages), { elicitation: { form: {} } }],
  ["a caller that can nothing", refused(pages), {}],
])("%s is left as it is", (_, error, capabilities) => {
  expect(toPageQuestions(error, capabilities, "shop")).toBeUndefined();
});
