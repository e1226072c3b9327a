import { expect, test } from "vitest";
import { connect } from "../../../client/src/client/connect.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { emptyListing } from "../../../core/src/provider/listing.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Operation, Provider } from "../../../core/src/provider/provider.ts";
import { createServer } from "../../../server/src/wire/server.ts";
import { type Pins, withPreparedLists } from "./pins.ts";

test("calls of a server with a lock keep the members that we do not know", async () => {
  const called: Operation[] = [];
  const provider: Provider = {
    list: () => emptyListing,
    call: (operation) => {
      called.push(operation);
      return { kind: "complete", result: RawJson.fromText('{"content":[]}') };
    },
    offers: () => ({ serves: () => true }),
  };
  const server = createServer(provider, { name: "one", version: "1.0.0" });
  const pins = { prepare: () => Promise.resolve() } as unknown as Pins;
  const open = withPreparedLists(
    "one",
    () => connect({ server }),
    () => pins,
  );
  await using client = await open({});
  const params = RawJson.parse(Buffer.from('{"name":"t","arguments":{},"extra":[1.0]}'));
  await client.call(createOperation("tools/call", "t", { params }), createCallContext());
  expect(called[0]?.params?.at("extra")?.text).toBe("[1.0]");
});
