import { describe, expect, test } from "vitest";
import { callTool, listTools, toProvider } from "../../../../test/support/use-provider.ts";
import { NotFoundError } from "../../../core/src/errors/index.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { withMiddleware } from "../../../core/src/provider/middleware.ts";
import type { Provider } from "../../../core/src/provider/provider.ts";
import { createRegistry, type Registry } from "../registry/registry.ts";
import { allowTools } from "./allow-list.ts";

const context = createCallContext();

function createTools(): Registry {
  const registry = createRegistry();
  for (const name of ["read", "read_all", "delete_all"]) registry.register(name, {}, () => name);
  return registry;
}

async function namesOf(provider: Provider): Promise<readonly string[]> {
  return (await listTools(provider, context)).map(({ name }) => name);
}

describe("allowTools", () => {
  test.each([
    [{}, ["read", "read_all", "delete_all"]],
    [{ allow: ["read*"] }, ["read", "read_all"]],
    [{ deny: ["delete_*"] }, ["read", "read_all"]],
    [{ allow: ["*_all"], deny: ["delete_*"] }, ["read_all"]],
    [{ allow: [] }, []],
  ])("%j leaves %j", async (options, expected) => {
    expect(await namesOf(withMiddleware(createTools(), [allowTools(options)]))).toEqual(expected);
  });

  test("is enforced on calls too", async () => {
    const provider = withMiddleware(createTools(), [allowTools({ deny: ["delete_*"] })]);
    const call = async (name: string): Promise<unknown> => callTool(provider, name, {}, context);
    await expect(call("delete_all")).rejects.toEqual(new NotFoundError("tool", "delete_all"));
    expect(await call("read")).toMatchObject({ kind: "complete" });
  });

  test("judges a list that changed again, and one that did not only once", async () => {
    const registry = createTools();
    const provider = withMiddleware(registry, [allowTools({ allow: ["read*"] })]);
    const first = await listTools(provider, context);
    expect(await listTools(provider, context)).toBe(first);
    registry.register("read_more", {}, () => "");
    expect(await namesOf(provider)).toEqual(["read", "read_all", "read_more"]);
  });

  test("judges a list that can change each time", async () => {
    const inputSchema = { type: "object" };
    const tools = [{ name: "read", inputSchema }];
    const changing = toProvider(() => tools, createTools().call);
    const provider = withMiddleware(changing, [allowTools({ deny: ["delete"] })]);
    expect(await namesOf(provider)).toEqual(["read"]);
    tools.push({ name: "delete", inputSchema }, { name: "write", inputSchema });
    expect(await namesOf(provider)).toEqual(["read", "write"]);
  });
});
