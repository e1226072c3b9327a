import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AskedQuestion, TryEvents } from "../junctor/src/admin/answers.ts";
import { type Api, ApiError, type StreamEvent } from "./api.ts";
import { messageOf } from "./parts.tsx";
import { type QuestionAnswer, Questions } from "./question.tsx";
import { LongText, ResultView } from "./result.tsx";
import {
  defaultsOf,
  type FormValue,
  isUnfinished,
  type JsonSchema,
  SchemaFields,
  toJson,
  UnfinishedJson,
  useTyped,
} from "./schema-form.tsx";
import { describeMs, toPrettyJson, toText } from "./words.ts";

/** What is called: one of the three. */
export type Callee = { readonly tool: string } | { readonly prompt: string } | { readonly resource: string };

type TryState =
  | { readonly kind: "idle" }
  | { readonly kind: "running" }
  | { readonly kind: "asked"; readonly questions: { readonly [key: string]: AskedQuestion } }
  | { readonly kind: "ended"; readonly result: unknown; readonly isError: boolean; readonly ms: number }
  | { readonly kind: "failed"; readonly message: string; readonly data?: unknown };

interface Told {
  readonly text: string;
  readonly share?: number;
}

/** Most progress and log messages that are shown. */
const maxTold = 500;

interface TryItProps {
  readonly api: Api;
  readonly callee: Callee;
  readonly schema: JsonSchema;
  readonly as: string | undefined;
}

/** A form for the arguments, and everything the call says until it ends. */
export function TryIt({ api, callee, schema, as }: TryItProps): JSX.Element {
  const [value, setValue] = useState<FormValue>(() => defaultsOf(schema) ?? {});
  const [isJson, setJson] = useState(false);
  const [state, setState] = useState<TryState>({ kind: "idle" });
  const [told, setTold] = useState<readonly Told[]>([]);
  const running = useRef<{ id?: string; readonly stopping: AbortController } | undefined>(undefined);
  useEffect(() => () => running.current?.stopping.abort(), []);

  const say = (each: Told): void => setTold((before) => [...before, each].slice(-maxTold));
  const onEvent = ({ kind, data }: StreamEvent<TryEvents>): void => {
    if (kind === "began" && running.current !== undefined) running.current.id = data.try;
    else if (kind === "progress") say(toProgress(data));
    else if (kind === "log") say({ text: `${data.level}: ${toText(data.data)}` });
    else if (kind === "question") setState({ kind: "asked", questions: data.questions });
    else if (kind === "result") setState({ kind: "ended", ...data });
    else if (kind === "error")
      setState({ kind: "failed", message: data.error.message, data: data.error.data });
  };
  const start = async (): Promise<void> => {
    const stopping = new AbortController();
    running.current = { stopping };
    setTold([]);
    setState({ kind: "running" });
    const body = {
      ...callee,
      ...("resource" in callee ? {} : { arguments: value }),
      ...(as === undefined ? {} : { as }),
    };
    try {
      await api.stream<TryEvents>("/api/try", onEvent, { signal: stopping.signal, body });
      setState((now) => (isOpen(now) ? { kind: "failed", message: "The gateway broke off the call." } : now));
    } catch (error) {
      const isStopped = stopping.signal.aborted;
      setState({ kind: "failed", message: isStopped ? "You cancelled the call." : messageOf(error) });
    }
  };
  const answer = (answers: { readonly [key: string]: QuestionAnswer }): void => {
    const { id } = running.current ?? {};
    setState({ kind: "running" });
    api.send("POST", `/api/try/${id}/answers`, { answers }).catch((error: unknown) => {
      const isRefused = error instanceof ApiError;
      setState({ kind: "failed", message: isRefused ? error.message : messageOf(error) });
    });
  };
  return (
    <div class="try">
      <form
        aria-label="Arguments"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        {!("resource" in callee) && (
          <Arguments schema={schema} value={value} onChange={setValue} isJson={isJson} onJson={setJson} />
        )}
        <div class="actions">
          <button type="submit" class="main" disabled={isOpen(state) || isUnfinished(value)}>
            {"resource" in callee ? "Read" : "Call"}
          </button>
          {isOpen(state) && (
            <button type="button" onClick={() => running.current?.stopping.abort()}>
              Cancel the call
            </button>
          )}
        </div>
      </form>
      <Output state={state} told={told} onAnswer={answer} />
    </div>
  );
}

function isOpen({ kind }: TryState): boolean {
  return kind === "running" || kind === "asked";
}

interface ArgumentsProps {
  readonly schema: JsonSchema;
  readonly value: FormValue;
  readonly onChange: (value: FormValue) => void;
  readonly isJson: boolean;
  readonly onJson: (isJson: boolean) => void;
}

/** Of all arguments in one field. */
const wholeJson = {
  toText: (value: FormValue): string => (value instanceof UnfinishedJson ? value.text : toPrettyJson(value)),
  parse: (text: string): FormValue => toJson(text) ?? {},
};

function Arguments({ schema, value, onChange, isJson, onJson }: ArgumentsProps): JSX.Element {
  const isEmpty = Object.keys(schema.properties ?? {}).length === 0;
  const typed = useTyped(wholeJson, value, onChange);
  return (
    <>
      {isJson ? (
        <div class="field">
          <label for="arguments">Arguments as JSON</label>
          <textarea id="arguments" rows={8} class="code" {...typed} />
        </div>
      ) : isEmpty ? (
        <p class="quiet">It states no arguments.</p>
      ) : (
        <SchemaFields id="argument" schema={schema} value={value} onChange={onChange} />
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={isJson}
          disabled={isJson && isUnfinished(value)}
          onChange={({ currentTarget }) => onJson(currentTarget.checked)}
        />
        Write the arguments as JSON
      </label>
    </>
  );
}

function toProgress({ progress, total, message }: TryEvents["progress"]): Told {
  const count = total === undefined ? String(progress) : `${progress} of ${total}`;
  const text = message ?? count;
  return total === undefined || total <= 0 ? { text } : { text, share: progress / total };
}

interface OutputProps {
  readonly state: TryState;
  readonly told: readonly Told[];
  readonly onAnswer: (answers: { readonly [key: string]: QuestionAnswer }) => void;
}

function Output({ state, told, onAnswer }: OutputProps): JSX.Element {
  const share = told.at(-1)?.share;
  return (
    <section aria-label="What the call says" aria-live="polite" class="output">
      {state.kind === "running" && <p>Running…</p>}
      {share !== undefined && isOpen(state) && (
        <progress value={share} max={1} aria-label="Progress of the call" />
      )}
      {told.length > 0 && <pre class="text stream">{told.map(({ text }) => text).join("\n")}</pre>}
      {state.kind === "asked" && <Questions questions={state.questions} onAnswer={onAnswer} />}
      {state.kind === "failed" && (
        <div class="trouble" role="alert">
          <p>{state.message}</p>
          {state.data !== undefined && <LongText text={toPrettyJson(state.data)} />}
        </div>
      )}
      {state.kind === "ended" && (
        <>
          <h3>
            {state.isError ? "The tool reports an error" : "Result"}, after {describeMs(state.ms)}
          </h3>
          <ResultView result={state.result} />
        </>
      )}
    </section>
  );
}
