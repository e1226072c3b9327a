import type { Message } from "../../support/raw-http.ts";

/** The reply to a POST or GET: its status, and its messages as they come. */
export interface Exchange {
  readonly status: number;
  readonly headers: Headers;
  /** Throws when the connection breaks. */
  readonly messages: AsyncGenerator<Message>;
  /** The id of the last event that came. */
  lastEventId(): string | undefined;
}

export async function exchange(url: string, init: RequestInit): Promise<Exchange> {
  const response = await fetch(url, init);
  let last: string | undefined;
  return {
    status: response.status,
    headers: response.headers,
    lastEventId: () => last,
    messages: readMessages(response, (id) => (last = id)),
  };
}

async function* readMessages(response: Response, onId: (id: string) => void): AsyncGenerator<Message> {
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
    const text = await response.text();
    if (text.startsWith("{") || text.startsWith("[")) yield* [JSON.parse(text)].flat() as Message[];
    return;
  }
  let unread = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body!) {
    unread += decoder.decode(bytes as Uint8Array, { stream: true });
    const blocks = unread.split("\n\n");
    unread = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = block
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
      const { id, data = "" } = Object.fromEntries(fields) as { id?: string; data?: string };
      if (id !== undefined) onId(id);
      if (data !== "") yield JSON.parse(data) as Message;
    }
  }
}
