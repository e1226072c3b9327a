/** What usually helps, by what a server's trouble says. */
const advice: readonly (readonly [RegExp, string])[] = [
  [
    /there is no program/,
    'Install it, or write its whole path as "command"; "cwd" must be a folder that exists.',
  ],
  [/ECONNREFUSED/, 'Start that server, or correct its "url".'],
  [/ENOTFOUND|EAI_AGAIN/, 'There is no such host: correct the "url".'],
  [/HTTP status 40[13]/, 'Give it credentials: "headers": { "Authorization": "Bearer ${TOKEN}" }.'],
  [/HTTP status 40[45]/, 'The "url" is not the address of an MCP endpoint; most end in /mcp or /sse.'],
  [/HTTP status 5/, "The server itself has a fault; see its own log."],
  [/within \d+ ms|still starting/, 'It may need longer: raise "startTimeoutMs" under junctor.servers.'],
  [/it exited with code|it ended|was ended by/, "Run its command by hand to see why it ends."],
  [/certificate/i, "Its certificate is not trusted here; NODE_EXTRA_CA_CERTS names a file with more."],
  [/cannot be listed/, "The server is up and refuses that list; its other parts work."],
];

/** What to do about a server's trouble; undefined when only its own words can help. */
export function adviseOn(trouble: string): string | undefined {
  return advice.find(([pattern]) => pattern.test(trouble))?.[1];
}
