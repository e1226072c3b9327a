import { describe, expect, test } from "vitest";
import { growthOf } from "../../../../test/support/growth.ts";
import { type SecretKind, secrets } from "./redact.ts";

const hide = (kind: SecretKind, text: string): string => secrets[kind].hide(text, "#");

// Put together here, so that no scanner of repositories takes them for real ones.
const letters = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3A";
const ghp = `ghp_${letters.slice(0, 36)}`;
const pat = `github_pat_${letters}_${letters}`;
const jwt = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", "c2lnbmF0dXJl-_"].join(".");
const openai = `sk-proj-${letters}`;
const pem = (word: string): string => `-----${word} RSA PRIVATE KEY-----`;
const awsId = "AKIAIOSFODNN7EXAMPLE";
const awsSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

describe("secrets are hidden", () => {
  test.each<[SecretKind, string, string]>([
    ["email", "mail ada.l+x@example.co.uk, please", "mail #, please"],
    ["email", "jürgen@exämple.de", "#"],
    ["email", "<a@b.de>;c@d.fr", "<#>;#"],
    ["credit-card", "4111111111111111", "#"],
    ["credit-card", "card 4111 1111 1111 1111 expires 12 27", "card # expires 12 27"],
    ["credit-card", "4111-1111-1111-1111-123", "#-123"],
    ["credit-card", "12 3782 822463 10005.", "12 #."],
    ["credit-card", "5555555555554444 4111111111111111", "# #"],
    ["aws-key", `id ${awsId}.`, "id #."],
    ["aws-key", `aws_secret_access_key = ${awsSecret}\n`, "aws_secret_access_key = #\n"],
    ["aws-key", `{"SecretAccessKey":"${awsSecret}"}`, '{"SecretAccessKey":"#"}'],
    ["github-token", `token ${ghp}, ${pat}`, "token #, #"],
    ["jwt", `token=${jwt};`, "token=#;"],
    ["jwt", `token_${jwt}`, "token_#"],
    ["private-key", `a ${pem("BEGIN")}\nMIIE\n${pem("END")} b`, "a # b"],
    ["private-key", `a ${pem("BEGIN")}\nMIIE`, "a #"],
    ["bearer", `Authorization: Bearer ${letters}`, "Authorization: #"],
    ["openai-key", `key=${openai}`, "key=#"],
  ])("%s in %s", (kind, text, expected) => {
    expect(hide(kind, text)).toBe(expected);
    expect(secrets[kind].hint.test(text)).toBe(true);
    expect(secrets[kind].hint.test(JSON.stringify(text))).toBe(true);
  });
});

describe("what is not a secret stays", () => {
  test.each<[SecretKind, string]>([
    ["email", "@mention, a@b, 5@5.5"],
    ["credit-card", "4111111111111112"],
    ["credit-card", "at 1700000000000 ms, id 41111111111111110000000"],
    ["credit-card", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"],
    ["aws-key", `xAKIA${"A".repeat(16)}, AKIA123`],
    ["github-token", "ghp_short"],
    ["jwt", "eyJ.eyJ.x and a.module.path_of_eyJ"],
    ["private-key", "-----BEGIN PUBLIC KEY-----"],
    ["bearer", "the bearer of good news"],
    ["openai-key", "task-force-of-many-people-and-more"],
  ])("%s in %s", (kind, text) => {
    expect(hide(kind, text)).toBe(text);
  });
});

describe("no text takes long", () => {
  const hostile = [
    "a",
    "1",
    "4 ",
    "4111 ",
    "eyJ",
    "eyJ.",
    "eyJaaaaaaaaa.",
    "a@",
    "a.",
    "a@b.",
    "sk-",
    "ghp_",
    "-",
    "AKIA",
  ];
  const more = ["bearer ", "github_pat_", `${pem("BEGIN")} `, "secret_access_key=", "secret_access_key "];
  const textOf = (piece: string, length: number): string =>
    `@eyJ${piece.repeat(Math.ceil(length / piece.length))}`;
  test.each(Object.keys(secrets) as SecretKind[])("to be searched for %s", (kind) => {
    for (const piece of [...hostile, ...more]) {
      const [small, large] = [1024, 32 * 1024];
      const texts = new Map([small, large].map((length) => [length, textOf(piece, length)]));
      const work = (length: number): unknown => hide(kind, texts.get(length)!);
      // 32 times the text takes 32 times as long, or some more where the engine needs a larger stack; a search that
      // begins again at every character takes 1024 times as long.
      expect([piece, growthOf({ small, large, work }, 256) < 256]).toEqual([piece, true]);
    }
  });
});
