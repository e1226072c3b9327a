import { andThen, settled } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { PromptArgument } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import { describeIssues, type JsonSchema } from "@junctor/core/schema";
import {
  assertSpec,
  type CompletionRegistry,
  type PromptHandler,
  type PromptRegistry,
  type SchemaSource,
  toSchema,
} from "../registry/index.ts";
import { eachCompleter, type Handler, toHandler } from "./handler.ts";
import { assertTakes, namesOf } from "./parameters.ts";
import type { AppPromptSpec } from "./types.ts";

/** The prompts of an app. */
export interface AppPrompts {
  readonly registry: PromptRegistry;
  readonly completion: CompletionRegistry;
  readonly used: { prompts: boolean; completion: boolean };
}

export function addPrompt(
  { registry, completion, used }: AppPrompts,
  name: string,
  spec: AppPromptSpec<SchemaSource, unknown>,
  handler: Handler,
): void {
  const what = `Prompt ${JSON.stringify(name)}`;
  assertSpec(what, spec, "prompt(name, {}, handler)");
  const { args, complete, ...about } = spec;
  if ("arguments" in about) throw new TypeError(`${what}: write args: z.object({ … }) for arguments`);
  const schema = args === undefined ? undefined : toSchema(args, { what: `${what}: args` });
  const listed = schema === undefined ? [] : toArguments(what, schema.json);
  const run = toHandler(handler);
  const checkedHandler: PromptHandler = (strings, context) =>
    andThen(settled(schema?.check(strings) ?? { ok: true as const, value: strings }), (checked) => {
      if (checked.ok) return run(checked.value, context) as ReturnType<PromptHandler>;
      throw new RpcError("rpc.invalid_params", `Invalid params: ${describeIssues(checked.issues)}`);
    });
  registry.register(
    name,
    { ...about, ...(listed.length > 0 ? { arguments: listed } : {}) },
    typeof handler === "function" ? checkedHandler : handler,
  );
  used.prompts = true;
  assertTakes(handler, { what, plural: "arguments", names: namesOf(args, handler) });
  const names = listed.map((argument) => argument.name);
  eachCompleter(complete, (argument, completer) => {
    if (!names.includes(argument))
      throw new TypeError(
        `${what}: complete: it has no argument ${JSON.stringify(argument)}; ` +
          suggest(argument, names, `its arguments are ${names.join(", ")}`),
      );
    completion.registerPrompt(name, argument, completer);
    used.completion = true;
  });
}

/** The arguments of a prompt, from the schema of an object. */
function toArguments(what: string, { type, properties, required }: JsonSchema): readonly PromptArgument[] {
  if (type !== "object" || typeof properties !== "object" || properties === null)
    throw new TypeError(`${what}: args must be a schema of an object: write z.object({ … })`);
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, schema]) => {
    const { title, description } = schema as { readonly title?: unknown; readonly description?: unknown };
    return {
      name,
      ...(typeof title === "string" ? { title } : {}),
      ...(typeof description === "string" ? { description } : {}),
      ...(needed.includes(name) ? { required: true } : {}),
    };
  });
}
