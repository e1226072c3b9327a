// One shape: what a provider is, and where names are read from params and written into them.
import { expect, test } from "vitest";
import type { Provider, Wrapper } from "../packages/core/src/provider/provider.ts";
import { createRegistry } from "../packages/server/src/registry/registry.ts";
import { readSource, readSourceGraph } from "./source-graph.ts";

test("a wrapper that forgets a member does not compile", () => {
  const inner: Provider = createRegistry();
  const { list, call, find, watch, offers, onChange } = inner;
  const whole: Wrapper = { list, call, find, watch, offers, onChange };
  const forgetful: readonly Wrapper[] = [
    // @ts-expect-error -- no list
    { call, find, watch, offers, onChange },
    // @ts-expect-error -- no call
    { list, find, watch, offers, onChange },
    // @ts-expect-error -- no find: names that callers may use and no list has would be gone
    { list, call, watch, offers, onChange },
    // @ts-expect-error -- no watch
    { list, call, find, offers, onChange },
    // @ts-expect-error -- no offers
    { list, call, find, watch, onChange },
    // @ts-expect-error -- no onChange
    { list, call, find, watch, offers },
    // @ts-expect-error -- what a spread brings may lack some of them
    { ...inner, list },
  ];
  expect(forgetful.map((wrapper) => Object.keys(wrapper).length)).not.toContain(
    Object.keys(whole).length + 1,
  );
});

/** The files that may read the name of a request from its params, and why. */
const readers: { readonly [file: string]: string } = {
  "core/src/provider/operation.ts": "readOperation",
  "core/src/mcp/mirrored-headers.ts": "compares the header that repeats a name with the name",
  "client/src/http/http-link.ts": "writes that header for requests that are not operations",
  "client/src/client/changes.ts": "the URI of a notification",
};
const reading =
  /stringParam\([^)]*"(?:name|uri|taskId)"|params\??\.(?:at|textOf)\((?:"(?:name|uri|taskId)"|member)\)/;

/** The files that may write a name into params, and why. */
const writers: { readonly [file: string]: string } = {
  "core/src/provider/operation.ts": "toParams",
  "server/src/wire/subscriptions.ts": "the URI of a notification",
};
const writing =
  /"(?:name|uri|taskId)":\$\{|\\"(?:name|uri|taskId)\\":|params[^;]*editMembers\([^)]*(?:name|uri|taskId)/;

test.each([
  ["reads the name of a request from its params", reading, readers],
  ["writes a name into params", writing, writers],
])("nothing else %s", (_, pattern, allowed) => {
  const files = [...readSourceGraph().keys()].filter((file) => /^(?:core|server|client)\//.test(file));
  const found = files.filter((file) => pattern.test(readSource(file)));
  expect(found.filter((file) => !Object.hasOwn(allowed, file))).toEqual([]);
});
