import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { Provider } from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import type { anybody, Authenticated } from "../http/index.ts";
import {
  createCompletionRegistry,
  createPromptRegistry,
  createRegistry,
  createResourceRegistry,
  type JsonSchema,
} from "../registry/index.ts";
import { type Handler, toHandler } from "./handler.ts";
import { assertTakes, namesOf } from "./parameters.ts";
import { addPrompt, type AppPrompts } from "./prompts.ts";
import { addResource, type AppResources, withListed } from "./resources.ts";
import { createServing } from "./serving.ts";
import type { App, AppOptions, UserOf } from "./types.ts";

const optionKeys: KeysOf<AppOptions<undefined>> = keys(
  "name title version description icons websiteUrl instructions user secret http server cacheHints tasks skills onError",
);

/** The names that other libraries have for these keys. */
const namesElsewhere = { authenticate: "user", auth: "user", getUser: "user", seal: "secret" };

/**
 * An app: tools, resources and prompts, with no transport in it. Export it as the default, and run it with `junctor serve app.ts`, with
 * `app.fetch` for web requests, with `app.node` in a Node framework, or with `app.listen()` and `app.stdio()`.
 *
 * @example
 * const app = createApp({ name: "geometry", version: "1.0.0" })
 *   .tool("area", { input: z.object({ width: z.number(), height: z.number() }) }, ({ width, height }) => width * height);
 */
export function createApp<Found extends Authenticated = typeof anybody>(
  options: AppOptions<Found>,
): App<UserOf<Found>> {
  assertAppOptions(options);
  const { cacheHints, onError, tasks, skills } = options;
  const completion = createCompletionRegistry();
  const used = { resources: false, prompts: false, completion: false };
  const resources: AppResources = {
    registry: createResourceRegistry(),
    completion,
    listers: new Map(),
    used,
  };
  const prompts: AppPrompts = { registry: createPromptRegistry(), completion, used };
  const registry = createRegistry({
    resources: whenUsed(withListed(resources), () => used.resources),
    prompts: whenUsed(prompts.registry, () => used.prompts),
    completion: whenUsed(completion, () => used.completion),
    ...(cacheHints === undefined ? {} : { cacheHints }),
    ...(tasks === undefined ? {} : { tasks }),
    ...(skills === undefined ? {} : { skills }),
    ...(onError === undefined ? {} : { onError }),
  });
  const { list, call, find, watch, offers, onChange } = registry;
  const app = {
    list,
    call,
    find,
    watch,
    offers,
    onChange,
    tool: (name: string, spec: { readonly input: JsonSchema }, handler: Handler) => {
      registry.register(name, spec as never, toHandler(handler) as never);
      const what = `Tool ${JSON.stringify(name)}`;
      assertTakes(handler, { what, plural: "arguments", names: namesOf(spec.input, handler) });
      return app;
    },
    resource: (...given: Parameters<typeof addResource> extends [unknown, ...infer Rest] ? Rest : never) => {
      addResource(resources, ...given);
      return app;
    },
    prompt: (...given: Parameters<typeof addPrompt> extends [unknown, ...infer Rest] ? Rest : never) => {
      addPrompt(prompts, ...given);
      return app;
    },
    updated: resources.registry.updated,
  };
  const serving = createServing(app, options as unknown as AppOptions<undefined>);
  // Not spread: that would evaluate the getter of `server` now.
  return Object.defineProperties(app, Object.getOwnPropertyDescriptors(serving)) as never;
}

function assertAppOptions(options: object): void {
  const usage = 'createApp: write createApp({ name: "weather", version: "1.0.0" })';
  if (typeof options !== "object" || options === null) throw new TypeError(usage);
  assertKnownKeys("createApp", options, optionKeys, namesElsewhere);
  const { name, version, user, secret } = options as Partial<AppOptions<undefined>>;
  if (typeof name !== "string" || name === "" || typeof version !== "string") throw new TypeError(usage);
  if (user !== undefined && typeof user !== "function")
    throw new TypeError(
      `createApp: user must be a function such as bearer(findUser), but is ${describeValue(user)}`,
    );
  for (const one of secret === undefined ? [] : [secret].flat())
    if (typeof one !== "string" || one.length < 32)
      throw new TypeError(
        "createApp: secret needs at least 32 characters. Make one: openssl rand -base64 32",
      );
}

/** A provider that offers nothing until something was added, so that an app does not declare what it lacks. */
function whenUsed(provider: Provider, isUsed: () => boolean): Provider {
  const noOffers = { serves: () => false };
  return { ...provider, offers: (caller) => (isUsed() ? provider.offers(caller) : noOffers) };
}
