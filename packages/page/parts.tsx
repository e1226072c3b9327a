import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";
import type { Loaded } from "./store.ts";
import { splitName } from "./words.ts";

/** How something is, in a shape and a colour; a word beside it says the same. */
export type Tone = "up" | "down" | "slow" | "idle" | "busy" | "asks";

const tones: { readonly [state: string]: Tone } = {
  up: "up",
  ok: "up",
  ready: "up",
  Worked: "up",
  Connected: "up",
  starting: "busy",
  queued: "busy",
  sent: "busy",
  answered: "busy",
  task: "busy",
  asked: "asks",
  parked: "asks",
  input_required: "asks",
  draining: "slow",
  slow: "slow",
  warning: "slow",
  warn: "slow",
  cancelled: "slow",
  down: "down",
  failed: "down",
  tool_error: "down",
  refused: "down",
  error: "down",
  fatal: "down",
  Revoked: "idle",
};

export function toneOf(state: string): Tone {
  return (Object.hasOwn(tones, state) ? tones[state] : undefined) ?? "idle";
}

export function Dot({ tone }: { readonly tone: Tone }): JSX.Element {
  return <span class={`dot ${tone}`} aria-hidden="true" />;
}

export function Badge({
  tone,
  children,
}: {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <span class={`badge ${tone}`}>
      <Dot tone={tone} />
      {children}
    </span>
  );
}

/** A view's heading. It takes the focus when the view is opened, so that a screen reader announces the view. */
export function Heading({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

interface PanelProps {
  readonly title: string;
  readonly count?: number;
  readonly side?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
}

export function Panel({ title, count, side, children, class: more = "" }: PanelProps): JSX.Element {
  return (
    <section class={`panel ${more}`} aria-label={title}>
      <header>
        <h2>
          {title}
          {count !== undefined && <span class="count"> {count}</span>}
        </h2>
        {side !== undefined && <div class="side">{side}</div>}
      </header>
      {children}
    </section>
  );
}

export interface Option {
  readonly value: string;
  readonly label: string;
  readonly count?: number | undefined;
}

interface SegmentsProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly onChange: (value: string) => void;
}

/** A choice of one among a few options. */
export function Segments({ label, value, options, onChange }: SegmentsProps): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
          {option.count !== undefined && <span class="count"> {option.count.toLocaleString("en-US")}</span>}
        </button>
      ))}
    </div>
  );
}

export const ranges: readonly Option[] = [
  { value: "5m", label: "5 min" },
  { value: "1h", label: "1 h" },
  { value: "24h", label: "24 h" },
];

export function toRangeMs(range: string): number {
  return range === "5m" ? 300_000 : range === "24h" ? 86_400_000 : 3_600_000;
}

interface SearchProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A search field; `/` goes there. */
export function Search({ label, value, onChange }: SearchProps): JSX.Element {
  return (
    <div class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        data-search
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

/** The last points of a series as a small line from zero, with its maximum beside it. */
export function Spark(props: {
  readonly values: readonly (number | null)[];
  readonly describe: (most: number) => string;
}): JSX.Element {
  const { values, describe } = props;
  const most = Math.max(0, ...values.map((value) => value ?? 0));
  if (most === 0) return <span class="quiet">no calls</span>;
  const every = Math.ceil(values.length / 40);
  const shown = values.filter((_, index) => index % every === 0);
  const step = 88 / Math.max(1, shown.length - 1);
  const points = shown.map(
    (value, index) => `${(index * step).toFixed(1)},${(19 - ((value ?? 0) / most) * 17).toFixed(1)}`,
  );
  return (
    <span class="sparked">
      <svg class="spark" viewBox="0 0 88 20" width="88" height="20" aria-hidden="true">
        <path class="area" d={`M0,20L${points.join("L")}L88,20Z`} />
        <path d={`M${points.join("L")}`} />
      </svg>
      <span class="most">{describe(most)}</span>
    </span>
  );
}

interface ActionProps {
  readonly label: string;
  readonly busy?: string;
  readonly act: () => Promise<unknown>;
  /** A question that must be confirmed before the action. */
  readonly confirm?: string;
  readonly onDone?: () => void;
  readonly icon?: IconName;
  readonly class?: string;
}

/** A button for something that takes a while and may be refused: the reason then stands beside it. */
export function Action({
  label,
  busy,
  act,
  confirm,
  onDone,
  icon,
  class: kind = "",
}: ActionProps): JSX.Element {
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly trouble?: string }>({
    isBusy: false,
  });
  const onClick = (): void => {
    if (state.isBusy || (confirm !== undefined && !globalThis.confirm(confirm))) return;
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
    <span class="action">
      <button type="button" class={kind} onClick={onClick} aria-busy={state.isBusy}>
        {icon !== undefined && <Icon name={state.isBusy ? "clock" : icon} />}
        {state.isBusy ? (busy ?? `${label.replace(/…$/, "")}…`) : label}
      </button>
      {state.trouble !== undefined && (
        <span class="trouble" role="alert">
          {state.trouble}
        </span>
      )}
    </span>
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A cause with what it means and what to do. */
export function CauseBox(props: {
  readonly tone: "danger" | "warn" | "info";
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const icon = props.tone === "danger" ? "danger" : props.tone === "warn" ? "warning" : "info";
  return (
    <div class={`cause ${props.tone}`}>
      <Icon name={icon} />
      <div>
        <p class="title">{props.title}</p>
        {props.children}
      </div>
    </div>
  );
}

/** Nothing to show: what would be here, and how to get it. */
export function Empty(props: { readonly title: string; readonly children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="title">{props.title}</p>
      {props.children}
    </div>
  );
}

/** What was loaded, or why there is nothing to show. */
export function WhenLoaded<T>(props: {
  readonly loaded: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { loaded, children } = props;
  if (loaded.kind === "failed") return <p class="trouble">{loaded.message}</p>;
  if (loaded.kind === "loading")
    return (
      <div class="skeleton" aria-label="Loading…">
        <i />
        <i />
        <i />
      </div>
    );
  return <>{children(loaded.value)}</>;
}

/** A tool: its server quiet, its own name in the foreground. */
export function ToolName(props: {
  readonly name: string;
  readonly server?: string | undefined;
}): JSX.Element {
  const [server, own] = splitName(props.name, props.server);
  return (
    <span class="tool-name">
      {server !== "" && <span class="quiet">{server} </span>}
      <b>{own}</b>
    </span>
  );
}

/** Names and values, one pair below the other. */
export function Facts(props: {
  readonly facts: readonly (readonly [string, ComponentChildren])[];
}): JSX.Element {
  return (
    <dl class="facts">
      {props.facts
        .filter(([, value]) => value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Copies a text, and says so. */
export function CopyButton({
  text,
  label = "Copy",
}: {
  readonly text: string;
  readonly label?: string;
}): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const onClick = (): void => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <button
      type="button"
      class="ghost small icon-only"
      aria-label={isCopied ? "Copied" : label}
      onClick={onClick}
    >
      <Icon name={isCopied ? "check" : "copy"} size={14} />
    </button>
  );
}

/** The keys of a view, and a line that sums the view up. */
export function KeyBar(props: {
  readonly keys: readonly (readonly [string, string])[];
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <footer class="keybar">
      <span aria-hidden="true">
        {props.keys.map(([key, does]) => (
          <span key={key} class="hint">
            {key.split(" ").map((each) => (
              <kbd key={each}>{each}</kbd>
            ))}
            {does}
          </span>
        ))}
      </span>
      <span>{props.children}</span>
    </footer>
  );
}

/** Calls back for keys pressed outside of fields, while no dialog is open. */
export function useKeys(keys: { readonly [key: string]: (event: KeyboardEvent) => void }): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
      const act = Object.hasOwn(latest.current, event.key) ? latest.current[event.key] : undefined;
      if (act === undefined || document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

export function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input,textarea,select,[contenteditable]") !== null;
}

/** The current time, updated while nothing else changes. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A number that grows while the page is visible. As a version of `useLoaded`, it has something read again. */
export function useTicks(everyMs: number): number {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setTicks((count) => count + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return ticks;
}

/** A list of this length or longer draws only the rows in view, and `overscan` rows around them. */
const minVirtualRows = 100;
const overscan = 10;

/** Which rows of a long list are drawn, and how much room the others take above and below. */
export function useWindow(
  count: number,
  rowHeight: number,
): {
  readonly ref: { current: HTMLDivElement | null };
  readonly first: number;
  readonly last: number;
  readonly above: number;
  readonly below: number;
} {
  const ref = useRef<HTMLDivElement | null>(null);
  const [place, setPlace] = useState({ top: 0, height: 900 });
  useEffect(() => {
    const box = ref.current;
    const scroller = box?.closest(".scroller");
    if (box === null || scroller === null || scroller === undefined) return undefined;
    const update = (): void => {
      const top = Math.max(0, scroller.getBoundingClientRect().top - box.getBoundingClientRect().top);
      const row = Math.floor(top / rowHeight);
      setPlace((before) =>
        Math.floor(before.top / rowHeight) === row && before.height === scroller.clientHeight
          ? before
          : { top, height: scroller.clientHeight },
      );
    };
    update();
    scroller.addEventListener("scroll", update, { passive: true });
    const observer = new ResizeObserver(update);
    observer.observe(scroller);
    return () => {
      scroller.removeEventListener("scroll", update);
      observer.disconnect();
    };
  }, [rowHeight]);
  if (count < minVirtualRows) return { ref, first: 0, last: count, above: 0, below: 0 };
  const first = Math.max(0, Math.floor(place.top / rowHeight) - overscan);
  const last = Math.min(count, Math.ceil((place.top + place.height) / rowHeight) + overscan);
  return { ref, first, last, above: first * rowHeight, below: (count - last) * rowHeight };
}
