import { expect, test } from "vitest";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { OldChange } from "../../../core/src/provider/old.ts";
import { createRegistry } from "../../../server/src/registry/registry.ts";
import { createResourceRegistry } from "../../../server/src/registry/resources.ts";
import { createGateway } from "./gateway.ts";

const uri = "note:a";

function createNotes() {
  const resources = createResourceRegistry();
  resources.register(uri, { name: "a" }, () => "text");
  return { resources, registry: createRegistry({ resources }) };
}

test("a change of a gateway inside a gateway is heard by the callers of the outer one", async () => {
  const { resources, registry } = createNotes();
  await using inner = await createGateway({ mcpServers: {} }, { local: { notes: registry } });
  await using outer = await createGateway({ mcpServers: {} }, { local: { inner: inner.provider } });
  await Promise.all([inner.ready, outer.ready]);
  const context = createCallContext();
  await outer.provider.resources?.listResources(context);
  const heard: OldChange[] = [];
  outer.provider.onChange?.((change) => {
    if (outer.provider.mayHear?.(change, context) !== false) heard.push(change);
  });
  await outer.provider.resources?.watch?.(uri, context);
  resources.updated(uri);
  await expect.poll(() => heard).toContainEqual(expect.objectContaining({ kind: "resource", uri }));
});

test("a gateway that was closed no longer listens to the providers of this process", async () => {
  const { registry } = createNotes();
  let listeners = 0;
  const counted = {
    ...registry,
    onChange: (listener: (change: OldChange) => void) => {
      listeners++;
      const stop = registry.onChange?.(listener);
      return () => {
        listeners--;
        stop?.();
      };
    },
  };
  const gateway = await createGateway({ mcpServers: {} }, { local: { notes: counted } });
  await gateway.ready;
  expect(listeners).toBe(1);
  await gateway.close();
  expect(listeners).toBe(0);
});
