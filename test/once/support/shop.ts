import { RawJson } from "../../../packages/core/src/json/raw.ts";
import { emptyListing, Listing } from "../../../packages/core/src/provider/listing.ts";
import type { Operation, Outcome, Provider } from "../../../packages/core/src/provider/provider.ts";
import { startListener } from "../../../packages/server/src/http/node.ts";
import { createServer } from "../../../packages/server/src/wire/server.ts";

/** A server over HTTP that counts its charges. */
export interface Shop extends AsyncDisposable {
  readonly entry: { readonly type: "http"; readonly url: string };
  /** How often it charged for each order. */
  readonly charged: ReadonlyMap<string, number>;
  /** Resolves with an order as soon as its charge has begun. */
  begun(order: string): Promise<void>;
  /** Lets the charge of an order that waits for it end. */
  release(order: string): void;
}

/** Its tool `charge` takes an order, and whether it waits until `release`. Each answer is another. */
export async function startShop(): Promise<Shop> {
  const charged = new Map<string, number>();
  const begun = new Map<string, PromiseWithResolvers>();
  const released = new Map<string, PromiseWithResolvers>();
  const input = {
    type: "object",
    properties: { order: { type: "string" }, waits: { type: "boolean" } },
    required: ["order"],
  } as const;
  let number = 0;
  const tools = new Listing([{ name: "charge", description: "Charges an order", inputSchema: input }]);
  // A provider of its own, because it also runs where nothing can be loaded later: a registry loads its validator.
  const provider = {
    list: (part: string) => (part === "tools" ? tools : emptyListing),
    call: async (operation: Operation): Promise<Outcome> => {
      const { order, waits } = operation.arguments.value as {
        readonly order: string;
        readonly waits?: boolean;
      };
      charged.set(order, (charged.get(order) ?? 0) + 1);
      at(begun, order).resolve();
      if (waits === true) await at(released, order).promise;
      const content = [{ type: "text", text: `charge ${++number} of ${order}` }];
      return { kind: "complete", result: RawJson.fromValue({ content }) };
    },
    offers: () => ({ serves: (method: string) => method.startsWith("tools/") }),
  } as Provider;
  const server = createServer(provider, { name: "shop", version: "1.0.0" });
  const listener = await startListener(server, { port: 0, graceMs: 100, onWarning: () => {} });
  return {
    entry: { type: "http", url: listener.url },
    charged,
    begun: (order) => at(begun, order).promise,
    release: (order) => at(released, order).resolve(),
    [Symbol.asyncDispose]: () => listener.close(),
  };
}

interface PromiseWithResolvers {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

function at(all: Map<string, PromiseWithResolvers>, key: string): PromiseWithResolvers {
  const known = all.get(key);
  if (known !== undefined) return known;
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  const made = { promise, resolve };
  all.set(key, made);
  return made;
}
