import { expect, test } from "vitest";
import { count, list, maybe, object, type Shape, text, word } from "./shape.ts";

interface Thing {
  readonly pid: number;
  readonly state: "up" | "down";
  readonly url?: string;
}

test("a shape has the schema of its type, and says which members are required", () => {
  const thing: Shape<Thing> = object("A thing.", {
    pid: count("Its number."),
    state: word("How it is.", ["up", "down"]),
    url: maybe(text("Where it is.")),
  });
  expect(list("Things.", thing).schema).toEqual({
    type: "array",
    description: "Things.",
    items: {
      type: "object",
      description: "A thing.",
      properties: {
        pid: { type: "integer", description: "Its number.", minimum: 0 },
        state: { type: "string", description: "How it is.", enum: ["up", "down"] },
        url: { type: "string", description: "Where it is." },
      },
      required: ["pid", "state"],
    },
  });
});

test("a shape that differs from its type does not compile", () => {
  const [pid, state, url] = [count("…"), word("…", ["up", "down"]), maybe(text("…"))] as const;
  const shapes: readonly Shape<Thing>[] = [
    object<Thing>("…", { pid, state, url }),
    // @ts-expect-error a missing member
    object<Thing>("…", { pid, state }),
    // @ts-expect-error a member that the type lacks
    object<Thing>("…", { pid, state, url, more: pid }),
    // @ts-expect-error a wrong type
    object<Thing>("…", { pid: text("…"), state, url }),
    // @ts-expect-error a word too few
    object<Thing>("…", { pid, state: word("…", ["up"]), url }),
    // @ts-expect-error a word too many
    object<Thing>("…", { pid, state: word("…", ["up", "down", "gone"]), url }),
    // @ts-expect-error a member that may be missing, without `maybe`
    object<Thing>("…", { pid, state, url: text("…") }),
    // @ts-expect-error a member that is always there, with `maybe`
    object<Thing>("…", { pid: maybe(count("…")), state, url }),
  ];
  expect(shapes).toHaveLength(8);
});
