/** A modern caller that writes its own requests, for tests of tasks. */

export const tasksId = "io.modelcontextprotocol/tasks";
export const knowsTasks: object = { elicitation: {}, extensions: { [tasksId]: {} } };

type Members = { readonly [member: string]: unknown };

export interface Frame {
  readonly method: string;
  readonly params: Members;
}

interface TaskReply {
  readonly status: number;
  readonly result: Members;
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
}

interface CallerOptions {
  readonly capabilities?: object;
  readonly key?: string;
}

export interface TaskCaller {
  (method: string, params: Members, signal?: AbortSignal): Promise<TaskReply>;
  /** Calls a tool that becomes a task, and gives its id. */
  begin(tool: string, args?: object): Promise<string>;
  /** Listens, and gives the notifications that come. */
  listen(notifications: object, signal: AbortSignal): AsyncGenerator<Frame>;
  /** Looks at a task until it is as wanted. */
  until(taskId: string, status: string): Promise<Members>;
}

const prefix = "io.modelcontextprotocol";

export function createTaskCaller(
  url: string,
  { capabilities = knowsTasks, key }: CallerOptions = {},
): TaskCaller {
  const send = (method: string, params: Members, signal?: AbortSignal): Promise<Response> => {
    const name = params["name"] ?? params["taskId"];
    const _meta = {
      [`${prefix}/protocolVersion`]: "2026-07-28",
      [`${prefix}/clientInfo`]: { name: "test", version: "1" },
      [`${prefix}/clientCapabilities`]: capabilities,
    };
    return fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...(typeof name === "string" ? { "mcp-name": name } : {}),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
      ...(signal === undefined ? {} : { signal }),
    });
  };
  const request = async (method: string, params: Members, signal?: AbortSignal): Promise<TaskReply> => {
    const response = await send(method, params, signal);
    const text = await response.text();
    const data = text.startsWith("{") ? text : (/^data: (.*"id":1.*)$/m.exec(text)?.[1] ?? "{}");
    const { result, error } = JSON.parse(data) as Pick<TaskReply, "result" | "error">;
    return { status: response.status, result, error };
  };
  async function* listen(notifications: object, signal: AbortSignal): AsyncGenerator<Frame> {
    const response = await send("subscriptions/listen", { notifications }, signal);
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString();
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines)
        if (line.startsWith("data: {")) yield JSON.parse(line.slice("data: ".length)) as Frame;
    }
  }
  return Object.assign(request, {
    listen,
    begin: async (tool: string, args: object = {}): Promise<string> => {
      const { result, error } = await request("tools/call", { name: tool, arguments: args });
      if (result?.["resultType"] !== "task") throw new Error(`No task: ${JSON.stringify(result ?? error)}`);
      return result["taskId"] as string;
    },
    until: async (taskId: string, status: string): Promise<Members> => {
      for (;;) {
        const { result, error } = await request("tasks/get", { taskId });
        if (result === undefined) throw new Error(JSON.stringify(error));
        if (result["status"] === status) return result;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  });
}
