import { createBackoff } from "../async/backoff.ts";
import { type Clock, sleep } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import { RawJson } from "../json/raw.ts";
import type { Notification } from "../jsonrpc/message.ts";
import { createChangeSource } from "../tools/changes.ts";
import type { Change } from "../tools/provider.ts";
import type { Conversation } from "./conversation.ts";
import type { PlainRequest } from "./lists.ts";

/** Hears of changes on the server, by the means of its era. */
export interface Watcher {
  /** Takes a notification; true when it told of a change. */
  take(notification: Notification): boolean;
  onChange(listener: (change: Change) => void): () => void;
  /** Hears of one resource until the returned function is called. Several may watch the same one. */
  watch(uri: string): Promise<() => void>;
  /** Starts hearing, unless that was done already. */
  start(): void;
  /** The conversation is another: everything is asked for anew, and everything may have changed. */
  renewed(): void;
  stop(): void;
}

const everything: readonly Change[] = [{ kind: "tools" }, { kind: "prompts" }, { kind: "resources" }];

export function createWatcher(
  converse: () => Promise<Conversation>,
  request: PlainRequest,
  onChanged: (change: Change) => void,
  clock: Clock,
  onWarning: (text: string) => void,
): Watcher {
  const source = createChangeSource();
  const uris = new Map<string, number>();
  const stopping = new AbortController();
  /** Lives as long as the conversation. */
  let epoch = new AbortController();
  /** Lives as long as what is asked for stays the same. */
  let round = new AbortController();
  let isStarted = false;
  let acknowledged = createDeferred<void>();

  const report = (change: Change): void => {
    onChanged(change);
    source.report(change);
  };
  const reportAll = (): void => {
    everything.forEach(report);
    for (const uri of uris.keys()) report({ kind: "resource", uri });
  };

  /** One `subscriptions/listen` after another; a changed wish ends the one that is on. */
  const listenModern = async (conversation: Conversation, over: AbortSignal): Promise<void> => {
    const backoff = createBackoff();
    let isFirst = true;
    while (!over.aborted) {
      round = new AbortController();
      const signal = AbortSignal.any([round.signal, over]);
      const { tools, prompts, resources } = conversation.agreement.capabilities;
      const notifications = {
        ...(tools?.listChanged === true ? { toolsListChanged: true } : {}),
        ...(prompts?.listChanged === true ? { promptsListChanged: true } : {}),
        ...(resources?.listChanged === true ? { resourcesListChanged: true } : {}),
        ...(uris.size === 0 ? {} : { resourceSubscriptions: [...uris.keys()] }),
      };
      if (Object.keys(notifications).length === 0) return;
      const startedAt = clock.now();
      try {
        if (!isFirst) reportAll();
        isFirst = false;
        await conversation.request("subscriptions/listen", RawJson.fromValue({ notifications }), { signal });
      } catch (error) {
        if (over.aborted) return;
        if (!round.signal.aborted) onWarning(`The stream of changes broke: ${String(error)}`);
      }
      if (round.signal.aborted) continue;
      if (clock.now() - startedAt > 5000) backoff.reset();
      await sleep(backoff.next(), clock, over).catch(() => {});
    }
  };

  const begin = async (): Promise<void> => {
    const conversation = await converse();
    const { link, agreement } = conversation;
    const over = AbortSignal.any([epoch.signal, stopping.signal]);
    if (agreement.mode.kind === "modern") await listenModern(conversation, over);
    else await link.listen?.(reportAll);
  };
  const start = (): void => {
    if (isStarted || stopping.signal.aborted) return;
    isStarted = true;
    begin().catch((error: unknown) => onWarning(`Changes cannot be heard of: ${String(error)}`));
  };

  return {
    take: (notification) => {
      if (notification.method === "notifications/subscriptions/acknowledged") {
        acknowledged.resolve();
        acknowledged = createDeferred();
        return true;
      }
      const change = toChange(notification);
      if (change !== undefined) report(change);
      return change !== undefined;
    },
    onChange: (listener) => {
      start();
      return source.onChange(listener);
    },
    watch: async (uri) => {
      const count = uris.get(uri) ?? 0;
      uris.set(uri, count + 1);
      const { agreement } = await converse();
      if (count === 0 && agreement.mode.kind === "legacy")
        await request("resources/subscribe", RawJson.fromValue({ uri }));
      if (count === 0 && agreement.mode.kind === "modern") {
        const heard = acknowledged.promise;
        if (isStarted) round.abort();
        else start();
        await heard;
      }
      start();
      return () => {
        const left = (uris.get(uri) ?? 1) - 1;
        if (left > 0) return void uris.set(uri, left);
        uris.delete(uri);
        if (agreement.mode.kind === "modern") round.abort();
        else request("resources/unsubscribe", RawJson.fromValue({ uri })).catch(() => {}); // A server that is gone forgot it.
      };
    },
    start,
    renewed: () => {
      reportAll();
      if (!isStarted) return;
      epoch.abort();
      epoch = new AbortController();
      isStarted = false;
      start();
      void converse().then(async ({ agreement }) => {
        if (agreement.mode.kind === "modern") return;
        for (const uri of uris.keys()) await request("resources/subscribe", RawJson.fromValue({ uri }));
      });
    },
    stop: () => stopping.abort(),
  };
}

function toChange({ method, params }: Notification): Change | undefined {
  switch (method) {
    case "notifications/tools/list_changed":
      return { kind: "tools" };
    case "notifications/prompts/list_changed":
      return { kind: "prompts" };
    case "notifications/resources/list_changed":
      return { kind: "resources" };
    case "notifications/resources/updated": {
      const uri = params?.at("uri")?.value;
      return typeof uri === "string" ? { kind: "resource", uri } : undefined;
    }
    default:
      return undefined;
  }
}
