import { type Authorizer, type Client, type ConnectOptions, type Target, connect } from "@junctor/client";
import { describeCommand } from "@junctor/client/internal";
import { waitFor } from "@junctor/core/async";
import { TextTail } from "@junctor/core/channel";
import { ClosedError, ConnectError, failureCodeOf, HttpError, TimeoutError } from "@junctor/core/errors";
import { defined } from "@junctor/core/options";
import { createServerAuthorizer, sharedOwner } from "../../credentials/index.ts";
import { junctor } from "../../invocation/index.ts";
import { toReason } from "../../servers/index.ts";
import { readVersion } from "../index.ts";
import { openLogins } from "../login/index.ts";
import {
  adviseOn,
  describeTrouble,
  type Interruption,
  note,
  ServerTrouble,
  toSafeText,
} from "../terminal/index.ts";
import type { Destination, NamedServer } from "./destination.ts";

/**
 * Connects, does something with the client, and closes it, also when interrupted or too late. What the server's command
 * wrote to its standard error stream is shown only when something went wrong, because most of them chatter. The signal that
 * `work` gets aborts when the person interrupts, or the time is over.
 */
export async function withClient<T>(
  destination: Destination,
  interruption: Interruption,
  options: ConnectOptions,
  work: (client: Client, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { target, headers, deadline, transport = "auto", server, login } = destination;
  const tail = new TextTail(4096);
  const signal =
    deadline === undefined ? interruption.signal : AbortSignal.any([interruption.signal, deadline.signal]);
  let stray = "";
  let isConnected = false;
  try {
    await using client = await connect(target, {
      clientInfo: { name: "junctor", title: "Junctor command line", version: readVersion() },
      headers,
      transport,
      ...(login === undefined ? {} : { authorization: toAuthorizer(login) }),
      signal,
      onStderr: (chunk) => tail.push(chunk),
      onStray: (line) => {
        stray = line;
      },
      ...(deadline === undefined ? {} : toLimits(deadline.timeoutMs)),
      ...options,
    });
    isConnected = true;
    return await waitFor(work(client, signal), { signal });
  } catch (error) {
    interruption.signal.throwIfAborted(); // Any other failure is a consequence of it.
    const said = tail.text.trim();
    const isLate = deadline?.signal.aborted === true;
    if (isConnected) {
      // Only the server's own output can tell why it went away.
      if (error instanceof ClosedError && said !== "") await note(`The server wrote:\n${indent(said)}\n`);
      throw isLate ? new TimeoutError("total", deadline.timeoutMs) : error;
    }
    if (error instanceof HttpError && error.status === 401 && Object.keys(headers).length > 0 && !server)
      throw new ServerTrouble(describeRefusal(error, headers));
    const failure = isLate
      ? new ConnectError(describeTarget(target), `it did not answer within ${deadline.timeoutMs} ms`, {
          kind: "no_answer",
          stderr: said,
          stray,
        })
      : error;
    throw server === undefined ? failure : toTrouble(server, failure, stray);
  }
}

/** A key that was refused needs other advice than a missing one. */
function describeRefusal({ url, excerpt }: HttpError, headers: Destination["headers"]): string {
  const { authorization } = headers;
  const words = wordsOf(excerpt);
  const said = words === "" ? "" : `; it says: ${words}`;
  if (authorization === undefined)
    return `${url} wants another header than ${Object.keys(headers).join(", ")}: --header "Authorization: Bearer KEY"${said}`;
  if (!/^\S+ \S/.test(authorization))
    return `${url} refused the header Authorization: write Bearer before the key: --header "Authorization: Bearer KEY"${said}`;
  return `${url} refused the key of --header "Authorization: …": it is not valid there, or expired${said}`;
}

/** What the body of an answer says: its text, or the message in its JSON. */
function wordsOf(excerpt: string): string {
  try {
    const {
      error,
      error_description: description,
      message,
    } = JSON.parse(excerpt) as { [name: string]: unknown };
    const nested = (error as { readonly message?: unknown } | null | undefined)?.message;
    const found = [description, nested, message, error].find((each) => typeof each === "string");
    return typeof found === "string" ? found : excerpt;
  } catch {
    return excerpt;
  }
}

/** The login that is stored for a server, if there is one. */
function toAuthorizer({ name, url, oauth }: NonNullable<Destination["login"]>): Authorizer {
  const advice = junctor(`login ${name}`);
  return createServerAuthorizer({
    server: new URL(url),
    oauth,
    owner: sharedOwner,
    logins: openLogins(),
    advice,
  });
}

/** No limit of the client's own may end a command before its deadline does. */
function toLimits(timeoutMs: number): ConnectOptions {
  // A silent child is first probed and then sent a legacy `initialize`; both must fit.
  const probeTimeoutMs = Math.min(3000, timeoutMs / 2);
  return {
    connectTimeoutMs: timeoutMs,
    maxStartMs: timeoutMs,
    probeTimeoutMs,
    timeoutMs,
    maxTotalMs: timeoutMs,
  };
}

/** The same failure in the words of a config. Unlike an error, it does not repeat the command, which may hold a key. */
function toTrouble({ name, launch, hide }: NamedServer, failure: unknown, stray: string): ServerTrouble {
  const said = failure instanceof ConnectError ? failure.stderr.trim() : "";
  const written = defined({ said: said || undefined, stray: stray || undefined });
  const failed = { name, launch, code: failureCodeOf(failure), reason: toReason(failure), ...written };
  return new ServerTrouble(describeTrouble(hide({ ...failed, advice: adviseOn(failed) })));
}

function describeTarget(target: Target): string {
  if (typeof target === "string" || target instanceof URL) return String(target);
  return "command" in target ? describeCommand(target) : "the servers of the config";
}

function indent(text: string): string {
  return toSafeText(text).replaceAll(/^/gm, "  ");
}
