import { describe, expect, test } from "vitest";
import { corsHeaders } from "./guard.ts";
import type { HttpRequest } from "./reply.ts";

const listed = ["https://app.example.com"];

function requestFrom(origin: string | undefined): HttpRequest {
  return { header: (name: string) => (name === "origin" ? origin : undefined) } as HttpRequest;
}

describe("the headers for pages of other origins", () => {
  test("name the origin when it is listed", () => {
    expect(corsHeaders(requestFrom("https://app.example.com"), listed)).toMatchObject({
      "access-control-allow-origin": "https://app.example.com",
      vary: "origin",
    });
  });

  test.each([undefined, "https://other.example.com"])(
    "keep a cache from giving the answer for %s to a listed origin",
    (origin) => {
      expect(corsHeaders(requestFrom(origin), listed)).toEqual({ vary: "origin" });
    },
  );
});
