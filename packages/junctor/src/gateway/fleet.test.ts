import { expect, test } from "vitest";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { Change, Notice } from "../../../core/src/provider/provider.ts";
import { createRegistry } from "../../../server/src/registry/registry.ts";
import { createResourceRegistry } from "../../../server/src/registry/resources.ts";
import { createGateway } from "./gateway.ts";

const uri = "note:a";

function createNotes() {
  const resources = createResourceRegistry();
  resources.register(uri, { name: "a" }, () => "text");
  return { resources, registry: createRegistry({ resources }) };
}

test("a change of a gateway inside a gateway reaches the callers of the outer one", async () => {
  const { resources, registry } = createNotes();
  await using inner = await createGateway({ mcpServers: {} }, { local: { notes: registry } });
  await using outer = await createGateway({ mcpServers: {} }, { local: { inner: inner.provider } });
  await Promise.all([inner.ready, outer.ready]);
  const context = createCallContext();
  await outer.provider.list("resources", context);
  const heard: Notice[] = [];
  const target = { part: "resources", name: uri, ref: undefined } as const;
  await outer.provider.watch?.(target, context, (notice) => heard.push(notice));
  resources.updated(uri);
  await expect.poll(() => heard).toContainEqual({ kind: "updated", uri });
});

test("a gateway that was closed no longer listens to the providers of this process", async () => {
  const { registry } = createNotes();
  let listeners = 0;
  const counted = {
    ...registry,
    onChange: (listener: (change: Change) => void) => {
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
