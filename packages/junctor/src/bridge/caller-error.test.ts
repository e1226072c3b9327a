import { describe, expect, test } from "vitest";
import { RpcError, ToolError, UpstreamError } from "../../../core/src/errors/index.ts";
import { extensionIds } from "../../../core/src/mcp/extension.ts";
import type { Revision } from "../../../core/src/mcp/revision.ts";
import type { ClientCapabilities } from "../../../core/src/mcp/types.ts";
import { toCallerError } from "./parking.ts";

const ui = { [extensionIds.ui]: {} };
const tasks = { [extensionIds.tasks]: {} };

const convert = (required: unknown, capabilities: ClientCapabilities, revision: Revision = "2026-07-28") =>
  toCallerError(
    new RpcError("rpc.missing_capability", "no", { data: { requiredCapabilities: required } }),
    { capabilities, revision },
    "up",
  );

describe("a server that misses capabilities", () => {
  test("has its modern caller told what it lacks, and nothing that it declared", () => {
    const required = { elicitation: { form: {} }, roots: {}, extensions: { ...ui, ...tasks } };
    expect(convert(required, { elicitation: {}, extensions: ui })).toMatchObject({
      rpcCode: -32021,
      message: `This request needs the client capabilities: roots, ${extensionIds.tasks}`,
      data: { requiredCapabilities: { roots: {}, extensions: tasks } },
    });
  });

  test("has its caller told of one mode where it declared the other", () => {
    expect(convert({ elicitation: { form: {}, url: {} } }, { elicitation: {} })).toMatchObject({
      data: { requiredCapabilities: { elicitation: { url: {} } } },
    });
  });

  test("and names only what the caller lacks passes as it is", () => {
    const error = convert({ extensions: tasks }, {});
    expect(error).toMatchObject({
      rpcCode: -32021,
      message: "no",
      data: { requiredCapabilities: { extensions: tasks } },
    });
  });

  test("though the caller declared it, and the gateway did not pass it on, has failed", () => {
    const error = convert(
      { extensions: { "com.example/maps": {} } },
      { extensions: { "com.example/maps": {} } },
    );
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({ code: "upstream.failed", delivery: "answered" });
    expect((error as Error).message).toContain("com.example/maps");
  });

  test("has its legacy caller's model told in words, extensions by their ids", () => {
    const error = convert({ sampling: {}, extensions: ui }, {}, "2025-06-18");
    expect(error).toBeInstanceOf(ToolError);
    expect((error as Error).message).toBe(
      `This needs sampling and ${extensionIds.ui}, which the client does not offer.`,
    );
  });

  test.each([[undefined], [null], [7], [{ extensions: [] }]])(
    "and says so by %j still has its caller told",
    (required) => {
      expect(convert(required, {})).toMatchObject({ rpcCode: -32021 });
      expect(convert(required, {}, "2025-11-25")).toBeInstanceOf(ToolError);
    },
  );
});
