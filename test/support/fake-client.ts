import type { Client } from "../../packages/client/src/client/client.ts";
import type { Agreement } from "../../packages/client/src/client/conversation.ts";
import { createDeferred } from "../../packages/core/src/async/queue.ts";
import type { ListFault } from "../../packages/core/src/fit/fit-listed.ts";
import type {
  CacheHints,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool,
} from "../../packages/core/src/mcp/types.ts";
import { levelsOf } from "../../packages/core/src/provider/changes.ts";
import { Listing } from "../../packages/core/src/provider/listing.ts";
import type { Change, Notice, Provider } from "../../packages/core/src/provider/provider.ts";
import type { OpenClient } from "../../packages/junctor/src/upstream/connection.ts";

/** What a fake client does when it is asked; what is left out is empty, or succeeds. */
export interface FakeAnswers {
  agreement?: () => Promise<Agreement>;
  tools?: () => Promise<readonly Tool[]>;
  resources?: () => Promise<readonly Resource[]>;
  templates?: () => Promise<readonly ResourceTemplate[]>;
  prompts?: () => Promise<readonly Prompt[]>;
  ping?: () => Promise<unknown>;
  close?: () => Promise<void>;
  watch?: (uri: string) => Promise<() => void>;
  hints?: CacheHints;
  faults?: readonly ListFault[];
}

/** A client of a server that is not there. */
export interface FakeClient {
  readonly client: Client;
  /** May be changed while it runs. */
  readonly answers: FakeAnswers;
  readonly isClosed: boolean;
  /** How often each list was asked for. */
  readonly asked: { tools: number; resources: number; templates: number; prompts: number; ping: number };
  /** A list changed, or a resource that may be watched. */
  announce(change: Change | { readonly uri: string }): void;
}

export const legacyAgreement: Agreement = {
  mode: { kind: "legacy", revision: "2025-11-25" },
  serverInfo: { name: "fake", version: "1.0.0" },
  capabilities: { tools: {} },
  instructions: undefined,
};

export function createFakeClient(answers: FakeAnswers = {}): FakeClient {
  const asked = { tools: 0, resources: 0, templates: 0, prompts: 0, ping: 0 };
  const listeners = new Set<(change: Change) => void>();
  const watching = new Set<{ readonly uri: string; readonly tell: (notice: Notice) => void }>();
  let isClosed = false;
  const count = <T>(
    what: keyof typeof asked,
    answer: (() => Promise<T>) | undefined,
    none: T,
  ): Promise<T> => {
    asked[what]++;
    return answer?.() ?? Promise.resolve(none);
  };
  const close = async (): Promise<void> => {
    await answers.close?.();
    isClosed = true;
  };
  const provider: Provider = {
    list: () => new Listing([]),
    call: () => Promise.reject(new Error("a fake client calls nothing")),
    offers: () => ({ serves: () => true }),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ...(answers.watch === undefined
      ? {}
      : {
          watch: async ({ name: uri }, _context, tell) => {
            const end = await answers.watch?.(uri);
            const watch = { uri, tell };
            watching.add(watch);
            return () => {
              watching.delete(watch);
              end?.();
            };
          },
        }),
  };
  const client = {
    ...provider,
    agreement: () => answers.agreement?.() ?? Promise.resolve(legacyAgreement),
    listTools: () => count("tools", answers.tools, []),
    listResources: () => count("resources", answers.resources, []),
    listResourceTemplates: () => count("templates", answers.templates, []),
    listPrompts: () => count("prompts", answers.prompts, []),
    forgetLists: () => {},
    request: () => count<unknown>("ping", answers.ping, {}),
    get listHints() {
      return answers.hints ?? { ttlMs: 0, cacheScope: "private" };
    },
    get listFaults() {
      return answers.faults ?? [];
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return {
    client: client as unknown as Client,
    answers,
    asked,
    get isClosed() {
      return isClosed;
    },
    announce: (change) => {
      if ("part" in change) return listeners.forEach((listener) => listener(change));
      const levels = new Set(levelsOf(change.uri));
      for (const { uri, tell } of watching) if (levels.has(uri)) tell({ kind: "updated", uri: change.uri });
    },
  };
}

/** One time that a server was to be opened. */
export interface Opening {
  readonly isSettled: boolean;
  /** What it became, if it did. */
  readonly fake: FakeClient | undefined;
  succeed(answers?: FakeAnswers): FakeClient;
  fail(error: Error): void;
  /** The server is gone. */
  lose(reason: Error): void;
}

/** A way to open clients that a test decides about, one by one. Giving up is heeded, as `connect` does. */
export interface FakeOpener {
  readonly open: OpenClient;
  readonly openings: readonly Opening[];
  /** The one that was asked for last. */
  readonly last: Opening;
  /** Those that are open or being opened. */
  readonly alive: number;
}

export function createFakeOpener(): FakeOpener {
  const openings: Opening[] = [];
  const open: OpenClient = ({ signal, onLost, onOpen }) => {
    const opened = createDeferred<Client>();
    let isSettled = false;
    let fake: FakeClient | undefined;
    const fail = (error: Error): void => {
      isSettled = true;
      opened.reject(error);
    };
    openings.push({
      get isSettled() {
        return isSettled;
      },
      get fake() {
        return fake;
      },
      succeed: (answers) => {
        isSettled = true;
        fake = createFakeClient(answers);
        opened.resolve(fake.client);
        return fake;
      },
      fail,
      lose: onLost,
    });
    try {
      onOpen();
    } catch (error) {
      fail(error as Error);
    }
    signal.addEventListener("abort", () => {
      if (!isSettled) fail(signal.reason as Error);
    });
    return opened.promise;
  };
  return {
    open,
    openings,
    get last() {
      const last = openings.at(-1);
      if (last === undefined) throw new Error("nothing was opened");
      return last;
    },
    get alive() {
      return openings.filter(({ isSettled, fake }) => !isSettled || fake?.isClosed === false).length;
    },
  };
}

/** Lets everything run that is ready to. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
