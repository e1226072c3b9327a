import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Loaded } from "./store.ts";

/** A view's heading, which takes the focus when the view is opened: a screen reader then says where one is. */
export function Heading({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

/** A state in a word and a colour; the word alone says it too. */
export function Badge({ state }: { readonly state: string }): JSX.Element {
  return <span class={`badge ${toneOf(state)}`}>{state.replaceAll("_", " ")}</span>;
}

const tones: { readonly [state: string]: string } = {
  up: "good",
  ready: "good",
  ok: "good",
  live: "good",
  starting: "busy",
  queued: "busy",
  sent: "busy",
  answered: "busy",
  asked: "asks",
  parked: "asks",
  input_required: "asks",
  task: "asks",
  warning: "asks",
  draining: "asks",
  warn: "asks",
  down: "bad",
  failed: "bad",
  tool_error: "bad",
  refused: "bad",
  error: "bad",
  fatal: "bad",
  lost: "bad",
  revoked: "bad",
};

function toneOf(state: string): string {
  return Object.hasOwn(tones, state) ? (tones[state] ?? "") : "";
}

/** The last points of a series as a small line. It is decoration: the numbers beside it say the same. */
export function Sparkline({ values }: { readonly values: readonly (number | null)[] }): JSX.Element {
  const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const step = values.length > 1 ? 96 / (values.length - 1) : 0;
  const points = values.map((value, i) => `${2 + i * step},${22 - ((value ?? 0) / most) * 20}`).join(" ");
  return (
    <svg class="spark" viewBox="0 0 100 24" aria-hidden="true" preserveAspectRatio="none">
      <polyline points={points} />
    </svg>
  );
}

interface ActionProps {
  readonly label: string;
  readonly act: () => Promise<unknown>;
  /** Asked before it is done. */
  readonly confirm?: string;
  readonly onDone?: () => void;
}

/** A button for something that takes a while and may be refused. */
export function Action({ label, act, confirm, onDone }: ActionProps): JSX.Element {
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly trouble?: string }>({
    isBusy: false,
  });
  const onClick = (): void => {
    if (confirm !== undefined && !globalThis.confirm(confirm)) return;
    setState({ isBusy: true });
    act().then(
      () => {
        setState({ isBusy: false });
        onDone?.();
      },
      (error: unknown) => setState({ isBusy: false, trouble: messageOf(error) }),
    );
  };
  return (
    <>
      <button type="button" onClick={onClick} disabled={state.isBusy}>
        {state.isBusy ? `${label}…` : label}
      </button>
      {state.trouble !== undefined && (
        <p class="trouble" role="alert">
          {state.trouble}
        </p>
      )}
    </>
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What was loaded, or why there is nothing to show. */
export function WhenLoaded<T>(props: {
  readonly loaded: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { loaded, children } = props;
  if (loaded.kind === "failed") return <p class="trouble">{loaded.message}</p>;
  if (loaded.kind === "loading") return <p class="quiet">Loading…</p>;
  return <>{children(loaded.value)}</>;
}

/** A table that a narrow screen scrolls by itself. */
export function Table(props: {
  readonly caption: string;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="scroll" role="region" aria-label={props.caption} tabIndex={0}>
      <table>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

/** Time that goes on while nothing else changes, once a second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
