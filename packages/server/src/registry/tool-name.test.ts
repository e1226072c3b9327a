import { expect, test } from "vitest";
import { assertToolName } from "./tool-spec.ts";

test.each(["a", "get_user", "admin.tools.list", "DATA-export/v2", "0", "x".repeat(128)])(
  "%s names a tool",
  (name) => {
    expect(() => assertToolName(name)).not.toThrow();
  },
);

test.each(["", "x".repeat(129), "two words", "é", "a,b", "a\n", "a:b", "__proto__\u0000"])(
  "%j does not, and the error says what does",
  (name) => {
    expect(() => assertToolName(name)).toThrow(
      `${JSON.stringify(name)} cannot name a tool: use 1 to 128 of the characters A-Z a-z 0-9 _ . / -`,
    );
  },
);
