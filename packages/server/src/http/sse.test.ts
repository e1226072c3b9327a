import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { keepAliveFrame, toData, toFrame, toPrimingFrame } from "./reply.ts";

/** The fields of the events in a piece of stream, read by the rules of the HTML standard. */
function read(text: string): readonly (readonly [field: string, value: string])[][] {
  const events: [string, string][][] = [[]];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === "") events.push([]);
    else if (!line.startsWith(":")) {
      const [field = "", ...rest] = line.split(":");
      events.at(-1)!.push([field, rest.join(":").replace(/^ /, "")]);
    }
  }
  return events.filter((event) => event.length > 0);
}

test("a frame is one event, whatever JSON it carries", () => {
  fc.assert(
    fc.property(jsonText(), (text) => {
      const params = RawJson.parse(Buffer.from(text));
      const data = toData({ kind: "notification", method: "x", params });
      const [event, ...others] = read(toFrame(data, "s:1"));
      expect(others).toEqual([]);
      expect(event).toEqual([
        ["event", "message"],
        ["id", "s:1"],
        ["data", data],
      ]);
      const { params: sent } = JSON.parse(data) as { readonly params: unknown };
      expect(sent).toEqual(JSON.parse(text));
    }),
  );
});

test("a modern frame has no id", () => {
  expect(toFrame("{}")).toBe("event: message\ndata: {}\n\n");
});

test("the priming frame has an id, how long to wait, and no data", () => {
  expect(read(toPrimingFrame("s:0", 1000))).toEqual([
    [
      ["id", "s:0"],
      ["retry", "1000"],
      ["data", ""],
    ],
  ]);
});

test("keep-alives are not events", () => {
  expect(read(keepAliveFrame)).toEqual([]);
});
