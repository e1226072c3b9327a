import { type Awaitable, andThen, settled } from "@junctor/core/async";
import type { Caller } from "@junctor/core/mcp";
import type { FindUser } from "./types.ts";

/**
 * Finds users by the token of `Authorization: Bearer TOKEN`. Find tokens by a lookup, or compare their hashes. `stdio` is the user on stdio:
 * the one of the client that started this process.
 *
 * @example
 * createApp({ name: "issues", version: "1.0.0", user: bearer((token) => users.byToken(token)) });
 */
export function bearer<User extends Caller>(
  find: (token: string) => Awaitable<User | undefined>,
  { stdio }: { readonly stdio?: User } = {},
): FindUser<User | undefined> {
  if (typeof find !== "function") throw new TypeError("Write bearer((token) => users.byToken(token))");
  return (header, request) => {
    const token = /^Bearer +(\S+)$/i.exec(header("authorization") ?? "")?.[1];
    if (token !== undefined) return andThen(settled(find(token)), (user) => user);
    return request === undefined ? stdio : undefined;
  };
}
