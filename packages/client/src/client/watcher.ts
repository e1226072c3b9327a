import type { Clock } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
import { RawJson, withoutMembers } from "@junctor/core/json";
import { metaKeys } from "@junctor/core/mcp";
import { type Change, createSource, type Notice } from "@junctor/core/provider";
import type { Notification } from "@junctor/core/rpc";
import type { Conversations } from "./conversations.ts";
import { createListening, type Listening } from "./listening.ts";
import type { PlainRequest } from "./lists.ts";

type Updated = Extract<Notice, { readonly kind: "updated" }>;

/** What a server tells: a list changed, or a resource. */
export type News = Change | Updated;

/** Hears of changes on the server, by the means of its era. */
export interface Watcher {
  onNews(listener: (news: News) => void): () => void;
  /** Hears of a resource, and what lies below it, until the returned function is called. Several may watch the same one. */
  watch(uri: string, listener: (notice: Updated) => void): Promise<() => void>;
  stop(): void;
}

interface WatcherOptions {
  readonly conversations: Conversations;
  readonly request: PlainRequest;
  readonly onChanged: (change: Change) => void;
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
}

/** A watched resource. */
interface WatchedResource {
  count: number;
  /** Settles when the server has agreed, or not. */
  readonly agreed: Promise<void>;
}

const lists: readonly Change[] = [{ part: "tools" }, { part: "prompts" }, { part: "resources" }];

export function createWatcher(options: WatcherOptions): Watcher {
  const { conversations, request, onChanged, clock, onWarning } = options;
  const source = createSource<News>((news) => ("part" in news ? news.part : `updated ${news.uri}`));
  const watched = new Map<string, WatchedResource>();
  /** Requests `resources/unsubscribe` that are underway, by URI. */
  const leaving = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  let listening: Listening | undefined;
  let starting: Promise<void> | undefined;

  const report = (news: News): void => {
    if ("part" in news) onChanged(news);
    source.report(news);
  };
  const reportAll = (): void => {
    lists.forEach(report);
    for (const uri of watched.keys()) report({ kind: "updated", uri });
  };

  const begin = async (): Promise<void> => {
    const conversation = await conversations.get();
    const { link, agreement } = conversation;
    if (agreement.mode.kind === "modern") {
      const uris = (): readonly string[] => [...watched.keys()];
      listening = createListening(conversation, { uris, onReopened: reportAll, clock, onWarning });
      return;
    }
    if (link.listen === undefined) return;
    const ended = link.listen((mayHaveMissed) => {
      conversation.isHearing = true;
      if (mayHaveMissed) reportAll();
    });
    ended
      .catch((error: unknown) => onWarning(`Changes cannot be heard of: ${String(error)}`))
      .finally(() => {
        conversation.isHearing = false;
      });
  };
  const start = (): Promise<void> => {
    if (stopping.signal.aborted) return Promise.resolve();
    starting ??= begin().catch((error: unknown) => {
      starting = undefined;
      throw error;
    });
    return starting;
  };
  const startQuietly = (): void => {
    const started = start().then(() => listening?.start());
    started.catch((error: unknown) => {
      if (!stopping.signal.aborted) onWarning(`Changes cannot be heard of: ${String(error)}`);
    });
  };

  const agree = async (uri: string): Promise<void> => {
    await start();
    if (listening === undefined) {
      // Two requests over HTTP may arrive in any order.
      await leaving.get(uri);
      await request("resources/subscribe", RawJson.fromValue({ uri }));
    } else {
      await listening.renew();
      if (!listening.honours(uri)) throw new NotFoundError("resource", uri);
    }
  };
  const release = (uri: string): void => {
    const entry = watched.get(uri);
    if (entry === undefined || --entry.count > 0) return;
    watched.delete(uri);
    if (listening !== undefined) return void listening.renew().catch(() => {});
    const left = request("resources/unsubscribe", RawJson.fromValue({ uri })).then(
      () => void leaving.delete(uri),
      () => void leaving.delete(uri), // A server that is gone has forgotten it.
    );
    leaving.set(uri, left);
  };

  conversations.hear({
    take: (notification) => {
      const { method, params } = notification;
      if (method === "notifications/subscriptions/acknowledged") {
        const honoured = params?.at("notifications")?.at("resourceSubscriptions")?.value;
        const id = params?.at("_meta")?.at(metaKeys.subscriptionId)?.text;
        listening?.acknowledged(id, Array.isArray(honoured) ? honoured : []);
        return true;
      }
      if (method === "notifications/cancelled") {
        listening?.cancelled(params?.at("requestId")?.text);
        return true;
      }
      const news = toNews(notification);
      if (news !== undefined) report(news);
      return news !== undefined;
    },
    /** Everything is asked for anew, and everything may have changed. */
    renewed: () => {
      reportAll();
      if (starting === undefined) return;
      listening?.stop();
      listening = undefined;
      starting = undefined;
      startQuietly();
      void resubscribe();
    },
  });

  return {
    onNews: (listener) => {
      startQuietly();
      return source.onChange(listener);
    },
    watch: async (uri, listener) => {
      let entry = watched.get(uri);
      if (entry === undefined) {
        // It is in the map before the server is asked, because the request is made from the map.
        const agreed = Promise.resolve().then(() => agree(uri));
        entry = { count: 0, agreed };
        watched.set(uri, entry);
      }
      entry.count++;
      // The server may tell of it before it is known here that it agreed.
      const deafen = source.onChange((news) => {
        if ("uri" in news && covers(uri, news.uri)) listener(news);
      });
      try {
        await entry.agreed;
      } catch (error) {
        deafen();
        if (watched.get(uri) === entry) watched.delete(uri);
        throw error;
      }
      let isWatching = true;
      return () => {
        deafen();
        if (isWatching) release(uri);
        isWatching = false;
      };
    },
    stop: () => {
      stopping.abort();
      listening?.stop();
    },
  };

  async function resubscribe(): Promise<void> {
    try {
      await start();
      if (listening !== undefined) return;
      for (const uri of watched.keys()) await request("resources/subscribe", RawJson.fromValue({ uri }));
    } catch (error) {
      onWarning(`A resource is no longer watched: ${String(error)}`);
    }
  }
}

function toNews({ method, params }: Notification): News | undefined {
  if (method !== "notifications/resources/updated")
    return lists.find(({ part }) => method === `notifications/${part}/list_changed`);
  const uri = params?.at("uri")?.value;
  if (params === undefined || typeof uri !== "string") return undefined;
  return { kind: "updated", uri, params: withoutMembers(params, ["_meta"]) };
}

/** A watch covers its URI and what lies below it. */
function covers(watched: string, uri: string): boolean {
  return uri === watched || uri.startsWith(watched.endsWith("/") ? watched : `${watched}/`);
}
