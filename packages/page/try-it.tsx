import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AskedQuestion, CallReport, TryEvents } from "../junctor/src/admin/answers.ts";
import type { Api, StreamEvent } from "./api.ts";
import { Icon } from "./icons.tsx";
import { Badge, CopyButton, Empty, messageOf, Segments } from "./parts.tsx";
import { type QuestionAnswer, Questions } from "./question.tsx";
import { LongText, ResultView } from "./result.tsx";
import { Form, SchemaFields, useTyped } from "./schema-form.tsx";
import {
  defaultsOf,
  type FieldFault,
  findFaults,
  type FormValue,
  isObject,
  type JsonSchema,
  toJson,
  UnfinishedJson,
} from "./schema.ts";
import { describeBytes, describeCount, describeMs, describeTime, toPrettyJson, toText } from "./words.ts";

/** What is called: one of the three. */
export type Callee = { readonly tool: string } | { readonly prompt: string } | { readonly resource: string };

type TryState =
  | { readonly kind: "idle" }
  | { readonly kind: "running" }
  | { readonly kind: "asked"; readonly questions: { readonly [key: string]: AskedQuestion } }
  | { readonly kind: "ended"; readonly result: unknown; readonly isError: boolean; readonly ms: number }
  | { readonly kind: "failed"; readonly message: string; readonly data?: unknown };

interface Message {
  readonly text: string;
  readonly share?: number;
}

/** The newest progress and log messages are shown, this many. */
const maxMessages = 500;

interface TryItProps {
  readonly api: Api;
  readonly callee: Callee;
  readonly schema: JsonSchema;
  readonly as: string | undefined;
  /** A call whose arguments are taken over, where they were recorded. */
  readonly from: string | undefined;
  /** The address for clients. */
  readonly url: string | undefined;
}

/** A form for the arguments; beside it everything the call says until it ends, and the same call elsewhere. */
export function TryIt({ api, callee, schema, as, from, url }: TryItProps): JSX.Element {
  const [value, setValue] = useState<FormValue>(() => defaultsOf(schema, schema) ?? {});
  const [isJson, setJson] = useState(false);
  const [leftFields, setLeftFields] = useState<ReadonlySet<string>>(new Set());
  const [isSubmitted, setSubmitted] = useState(false);
  const { state, messages, start, answer, cancel, endedAt } = useTry(api, callee, as);
  useArguments(api, from, setValue);
  const faults = useMemo(
    () =>
      findFaults(schema, value, {
        id: "argument",
        label: "",
        root: schema,
        isRequired: false,
        depth: 0,
        seen: [],
      }),
    [schema, value],
  );
  const shown = faults.filter(({ id }) => isSubmitted || leftFields.has(id));
  const form = {
    root: schema,
    faults: new Map(shown.map(({ id, message }) => [id, message])),
    onLeave: (id: string) => setLeftFields((before) => (before.has(id) ? before : new Set([...before, id]))),
  };
  const call = (): void => {
    setSubmitted(true);
    if (isOpen(state)) return;
    // A server may accept what the form finds wrong: written as JSON, only text that does not parse stops the call.
    if (hasUnfinished(value) || (faults.length > 0 && !isJson))
      document.getElementById(faults[0]?.id ?? "arguments")?.focus();
    else void start(value);
  };
  return (
    <div class="try">
      <form
        aria-label="Arguments"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          call();
        }}
        onKeyDown={(event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && call()}
      >
        <div class="try-fields">
          {!("resource" in callee) && (
            <Form.Provider value={form}>
              <Arguments schema={schema} value={value} onChange={setValue} isJson={isJson} onJson={setJson} />
            </Form.Provider>
          )}
        </div>
        <CallBar callee={callee} state={state} faults={isJson ? [] : shown} onCancel={cancel} as={as} />
      </form>
      <aside class="answer" aria-label="Answer">
        <Output state={state} messages={messages} onAnswer={answer} endedAt={endedAt} />
        {!("resource" in callee) && <Elsewhere callee={callee} value={value} url={url} />}
      </aside>
    </div>
  );
}

/** Runs one call at a time, and collects its messages. */
function useTry(
  api: Api,
  callee: Callee,
  as: string | undefined,
): {
  readonly state: TryState;
  readonly messages: readonly Message[];
  readonly endedAt: number;
  readonly start: (value: FormValue) => Promise<void>;
  readonly answer: (answers: { readonly [key: string]: QuestionAnswer }) => void;
  readonly cancel: () => void;
} {
  const [state, setState] = useState<TryState>({ kind: "idle" });
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [endedAt, setEndedAt] = useState(0);
  const running = useRef<{ id?: string; readonly stopping: AbortController } | undefined>(undefined);
  useEffect(() => () => running.current?.stopping.abort(), []);
  const addMessage = (message: Message): void =>
    setMessages((before) => [...before, message].slice(-maxMessages));
  const onEvent = ({ kind, data }: StreamEvent<TryEvents>): void => {
    if (kind === "began" && running.current !== undefined) running.current.id = data.try;
    else if (kind === "progress") addMessage(toProgress(data));
    else if (kind === "log") addMessage({ text: `${data.level}: ${toText(data.data)}` });
    else if (kind === "question") setState({ kind: "asked", questions: data.questions });
    else if (kind === "result") setState({ kind: "ended", ...data });
    else if (kind === "error")
      setState({ kind: "failed", message: data.error.message, data: data.error.data });
  };
  const start = async (value: FormValue): Promise<void> => {
    const stopping = new AbortController();
    running.current = { stopping };
    setMessages([]);
    setState({ kind: "running" });
    const body = {
      ...callee,
      ...("resource" in callee ? {} : { arguments: value ?? {} }),
      ...(as === undefined ? {} : { as }),
    };
    try {
      await api.stream<TryEvents>("/api/try", onEvent, { signal: stopping.signal, body });
      setState((now) => (isOpen(now) ? { kind: "failed", message: "The gateway broke off the call." } : now));
    } catch (error) {
      const isStopped = stopping.signal.aborted;
      setState({ kind: "failed", message: isStopped ? "You cancelled the call." : messageOf(error) });
    }
    setEndedAt(Date.now());
  };
  const answer = (answers: { readonly [key: string]: QuestionAnswer }): void => {
    const { id } = running.current ?? {};
    setState({ kind: "running" });
    api.send("POST", `/api/try/${id}/answers`, { answers }).catch((error: unknown) => {
      setState({ kind: "failed", message: messageOf(error) });
    });
  };
  return { state, messages, endedAt, start, answer, cancel: () => running.current?.stopping.abort() };
}

/** Takes over the arguments of an earlier call, if they were recorded. */
function useArguments(api: Api, from: string | undefined, onFound: (value: FormValue) => void): void {
  useEffect(() => {
    if (from === undefined) return;
    api.get<CallReport>(`/api/calls/${encodeURIComponent(from)}`).then(
      (call) => isObject(call.arguments) && onFound(call.arguments),
      () => {},
    );
  }, [from]);
}

function isOpen({ kind }: TryState): boolean {
  return kind === "running" || kind === "asked";
}

/** Whether some field holds JSON that does not parse. */
function hasUnfinished(value: FormValue): boolean {
  if (value instanceof UnfinishedJson) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(hasUnfinished);
}

function CallBar(props: {
  readonly callee: Callee;
  readonly state: TryState;
  readonly faults: readonly FieldFault[];
  readonly onCancel: () => void;
  readonly as: string | undefined;
}): JSX.Element {
  const { callee, state, faults, onCancel, as } = props;
  const [first] = faults;
  return (
    <div class="call-bar">
      <button type="submit" class="ink" aria-busy={isOpen(state)}>
        <Icon name="play" />
        {"resource" in callee ? "Read" : isOpen(state) ? "Calling…" : "Call"}
      </button>
      {isOpen(state) && (
        <button type="button" onClick={onCancel}>
          Cancel the call
        </button>
      )}
      {first !== undefined && (
        <p class="fault" role="status">
          <Icon name="danger" size={14} /> {describeCount(faults.length, "field")} to correct:{" "}
          <a
            href={`#${first.id}`}
            onClick={(event) => {
              event.preventDefault();
              document.getElementById(first.id)?.focus();
            }}
          >
            {first.label}
          </a>
        </p>
      )}
      {as !== undefined && <span class="side quiet">as {as}</span>}
    </div>
  );
}

interface ArgumentsProps {
  readonly schema: JsonSchema;
  readonly value: FormValue;
  readonly onChange: (value: FormValue) => void;
  readonly isJson: boolean;
  readonly onJson: (isJson: boolean) => void;
}

/** How all arguments are written in one field. */
const wholeJson = {
  toText: (value: FormValue): string => (value instanceof UnfinishedJson ? value.text : toPrettyJson(value)),
  parse: (text: string): FormValue => toJson(text) ?? {},
};

function Arguments({ schema, value, onChange, isJson, onJson }: ArgumentsProps): JSX.Element {
  const isEmpty = Object.keys(schema.properties ?? {}).length === 0;
  const typed = useTyped(wholeJson, value, onChange);
  const fault = value instanceof UnfinishedJson ? value.fault : undefined;
  return (
    <>
      <div class="form-or-json">
        <Segments
          label="Arguments as"
          value={isJson ? "json" : "form"}
          options={[
            { value: "form", label: "Form" },
            { value: "json", label: "JSON" },
          ]}
          onChange={(next) => (next === "json" || fault === undefined) && onJson(next === "json")}
        />
      </div>
      {isJson ? (
        <div class="field whole">
          <label for="arguments">Arguments as JSON</label>
          <textarea
            id="arguments"
            rows={14}
            class="code"
            spellcheck={false}
            aria-invalid={fault === undefined ? undefined : true}
            {...typed}
          />
          {fault !== undefined && <p class="fault">{fault}</p>}
        </div>
      ) : isEmpty ? (
        <p class="quiet">It states no arguments.</p>
      ) : (
        <SchemaFields id="argument" schema={schema} value={value} onChange={onChange} depth={0} seen={[]} />
      )}
    </>
  );
}

function toProgress({ progress, total, message }: TryEvents["progress"]): Message {
  const count = total === undefined ? String(progress) : `${progress} of ${total}`;
  const text = message ?? count;
  return total === undefined || total <= 0 ? { text } : { text, share: progress / total };
}

interface OutputProps {
  readonly state: TryState;
  readonly messages: readonly Message[];
  readonly endedAt: number;
  readonly onAnswer: (answers: { readonly [key: string]: QuestionAnswer }) => void;
}

function Output({ state, messages, onAnswer, endedAt }: OutputProps): JSX.Element {
  const share = messages.at(-1)?.share;
  return (
    <section aria-label="What the call says" aria-live="polite" class="output">
      <header>
        <h3>Answer</h3>
        {state.kind === "ended" && (
          <Badge tone={state.isError ? "down" : "up"}>{state.isError ? "The tool failed" : "Worked"}</Badge>
        )}
        {state.kind === "running" && <Badge tone="busy">Running…</Badge>}
        {state.kind === "asked" && <Badge tone="asks">It asks</Badge>}
        {state.kind === "failed" && <Badge tone="down">Failed</Badge>}
        {state.kind === "ended" && (
          <span class="side quiet">
            {describeMs(state.ms)} · {describeBytes(JSON.stringify(state.result ?? null).length)} ·{" "}
            {endedAt > 0 && describeTime(endedAt)}
          </span>
        )}
      </header>
      {state.kind === "idle" && (
        <Empty title="The answer comes here.">
          <p class="quiet">With progress and questions of the tool, while it runs.</p>
        </Empty>
      )}
      {share !== undefined && isOpen(state) && (
        <progress value={share} max={1} aria-label="Progress of the call" />
      )}
      {messages.length > 0 && <pre class="code stream">{messages.map(({ text }) => text).join("\n")}</pre>}
      {state.kind === "asked" && <Questions questions={state.questions} onAnswer={onAnswer} />}
      {state.kind === "failed" && (
        <div class="trouble" role="alert">
          <p>{state.message}</p>
          {state.data !== undefined && <LongText text={toPrettyJson(state.data)} />}
        </div>
      )}
      {state.kind === "ended" && <ResultView result={state.result} />}
    </section>
  );
}

const notations = ["junctor call", "curl", "TypeScript"] as const;

/** The same call in a terminal and in a program. The key is not part of it. */
function Elsewhere(props: {
  readonly callee: Callee;
  readonly value: FormValue;
  readonly url: string | undefined;
}): JSX.Element | null {
  const { callee, value, url } = props;
  const [notation, setNotation] = useState<string>(notations[0]);
  if (!("tool" in callee)) return null;
  const text = writeCall(
    notation,
    callee.tool,
    value instanceof UnfinishedJson ? {} : (value ?? {}),
    url ?? "http://127.0.0.1:7780/mcp",
  );
  return (
    <section class="elsewhere" aria-label="Do the same elsewhere">
      <h3>Do the same elsewhere</h3>
      <Segments
        label="Written for"
        value={notation}
        options={notations.map((each) => ({ value: each, label: each }))}
        onChange={setNotation}
      />
      <div class="code-line">
        <pre>{text}</pre>
        <CopyButton text={text} label="Copy. The key is not part of it." />
      </div>
    </section>
  );
}

function writeCall(notation: string, tool: string, value: unknown, url: string): string {
  const quote = (text: string): string =>
    /^[\w./:=@,+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  if (notation === "junctor call") {
    return `junctor call ${quote(tool)} --server ${url} \\\n  --args ${quote(JSON.stringify(value))}`;
  }
  if (notation === "curl") {
    const message = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: {
        name: tool,
        arguments: value,
        _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" },
      },
    };
    return [
      `curl ${url}`,
      `-H 'content-type: application/json'`,
      `-H 'accept: application/json, text/event-stream'`,
      `-H 'mcp-protocol-version: 2026-07-28'`,
      `-H 'mcp-method: tools/call' -H ${quote(`mcp-name: ${tool}`)}`,
      `-d ${quote(JSON.stringify(message))}`,
    ].join(" \\\n  ");
  }
  return [
    `import { connect } from "@junctor/client";`,
    ``,
    `await using client = await connect(${JSON.stringify(url)});`,
    `const result = await client.callTool(`,
    `  ${JSON.stringify(tool)},`,
    `  ${toPrettyJson(value).replaceAll("\n", "\n  ")},`,
    `);`,
  ].join("\n");
}
