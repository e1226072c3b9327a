import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, Mark } from "./icons.tsx";
import { Palette } from "./palette.tsx";
import { CopyButton, Dot, isField, useNow } from "./parts.tsx";
import { go, hrefOf, type Route } from "./route.ts";
import { isTrouble, type Known, type Store, toolCount, useKnown, waitingCount } from "./store.ts";
import { type ViewRow, viewRows } from "./views.ts";
import { describeAge, describeNumber } from "./words.ts";

/** Views in the bar at the bottom of a phone; the others are under *More*. */
const inBar = ["overview", "servers", "calls", "waiting"];

interface ShellProps {
  readonly store: Store;
  readonly route: Route;
  readonly children: ComponentChildren;
}

/** The frame around the views: navigation, and the state of the gateway. */
export function Shell({ store, route, children }: ShellProps): JSX.Element {
  const known = useKnown(store);
  const [open, setOpen] = useState<"palette" | "keys" | "more" | undefined>(undefined);
  useShortcuts(setOpen);
  const label = viewRows.find(({ name }) => name === route.view)?.label ?? "Junctor";
  useEffect(() => {
    document.title = `${route.rest === "" ? label : `${route.rest} · ${label}`} · Junctor`;
    setOpen((now) => (now === "more" ? undefined : now));
  }, [label, route.rest]);
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header class="topbar">
        <Mark size={28} />
        <span class="title">{label}</span>
        <button
          type="button"
          class="ghost icon-only"
          aria-label="Find or do"
          onClick={() => setOpen("palette")}
        >
          <Icon name="search" size={20} />
        </button>
      </header>
      <Sidebar
        known={known}
        view={route.view}
        onFind={() => setOpen("palette")}
        onKeys={() => setOpen("keys")}
      />
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <nav class="bottombar" aria-label="Main views">
        {viewRows
          .filter(({ name }) => inBar.includes(name))
          .map((row) => (
            <ViewLink key={row.name} row={row} isCurrent={row.name === route.view} known={known} size={20} />
          ))}
        <button
          type="button"
          aria-expanded={open === "more"}
          class={inBar.includes(route.view) ? "" : "current"}
          onClick={() => setOpen(open === "more" ? undefined : "more")}
        >
          <Icon name="more" size={20} />
          <span>More</span>
        </button>
        {open === "more" && (
          <div class="sheet">
            {viewRows
              .filter(({ name }) => !inBar.includes(name))
              .map((row) => (
                <ViewLink
                  key={row.name}
                  row={row}
                  isCurrent={row.name === route.view}
                  known={known}
                  size={20}
                />
              ))}
            <ThemeButton />
          </div>
        )}
      </nav>
      {open === "palette" && <Palette store={store} onClose={() => setOpen(undefined)} />}
      {open === "keys" && <KeyList onClose={() => setOpen(undefined)} />}
    </div>
  );
}

/** Without this, the part after `#` would be taken for a view. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

/** Keys that work everywhere, outside of fields. */
function useShortcuts(open: (what: "palette" | "keys") => void): void {
  useEffect(() => {
    let isAfterG = false;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open("palette");
        return;
      }
      const wasAfterG = isAfterG;
      isAfterG = false;
      if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      if (wasAfterG) {
        const row = viewRows.find(({ key }) => key === event.key);
        if (row === undefined) return;
        event.stopImmediatePropagation();
        event.preventDefault();
        go(row.name);
      } else if (event.key === "g") isAfterG = true;
      else if (event.key === "?") open("keys");
      else if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("main [data-search]");
        if (field === null) return;
        event.preventDefault();
        field.select();
      }
    };
    addEventListener("keydown", onKey, { capture: true });
    return () => removeEventListener("keydown", onKey, { capture: true });
  }, [open]);
}

interface SidebarProps {
  readonly known: Known;
  readonly view: string;
  readonly onFind: () => void;
  readonly onKeys: () => void;
}

function Sidebar({ known, view, onFind, onKeys }: SidebarProps): JSX.Element {
  const { status, link } = known;
  const now = useNow(10_000);
  const word =
    link === "live"
      ? status?.state === "ready"
        ? "Taking calls"
        : status?.state === "draining"
          ? "Draining"
          : "Starting"
      : "Connecting…";
  const endpoint = status?.url?.replace(/^https?:\/\//, "");
  return (
    <header class="sidebar">
      <div class="brand">
        <Mark />
        <span>Junctor</span>
      </div>
      <button type="button" class="find" onClick={onFind}>
        <Icon name="search" />
        <span>Find or do</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <nav aria-label="Views">
        {viewRows.map((row) => (
          <ViewLink key={row.name} row={row} isCurrent={row.name === view} known={known} />
        ))}
      </nav>
      <div class="about">
        <p>
          <Dot tone={link === "live" ? (status?.state === "ready" ? "up" : "busy") : "slow"} />
          <b>{word}</b>
          <span class="side quiet">
            {status === undefined ? "" : `up ${describeAge(now - status.startedAt)}`}
          </span>
        </p>
        <p class="endpoint">
          {endpoint !== undefined && (
            <>
              <code title={status?.url}>{endpoint}</code>
              <CopyButton text={status?.url ?? ""} label="Copy the address for clients" />
            </>
          )}
        </p>
        <p>
          <span class="quiet">{status?.version ?? ""}</span>
          <span class="side">
            <ThemeButton />
            <button type="button" class="ghost small icon-only" aria-label="List of keys" onClick={onKeys}>
              <kbd>?</kbd>
            </button>
          </span>
        </p>
      </div>
    </header>
  );
}

function ViewLink(props: {
  readonly row: ViewRow;
  readonly isCurrent: boolean;
  readonly known: Known;
  readonly size?: number;
}): JSX.Element {
  const { row, isCurrent, known, size = 16 } = props;
  return (
    <a
      href={row.name === "overview" ? "#/" : hrefOf(row.name)}
      aria-current={isCurrent ? "page" : undefined}
      title={row.label}
    >
      <Icon name={row.icon} size={size} />
      <span>{row.label}</span>
      <Count view={row.name} known={known} />
    </a>
  );
}

/** The number beside a view. Servers also show how many are in trouble; only the number of waiting things is highlighted. */
function Count({ view, known }: { readonly view: string; readonly known: Known }): JSX.Element | null {
  const { servers } = known;
  if (view === "waiting") {
    const count = waitingCount(known);
    return count === 0 ? null : <span class="waits">{count}</span>;
  }
  if (view === "servers") {
    const troubleCount = servers.filter(isTrouble).length;
    return (
      <span class="count">
        {troubleCount > 0 && <b class="danger">{troubleCount}</b>}
        {troubleCount > 0 && " / "}
        {servers.length}
      </span>
    );
  }
  return view === "tools" ? <span class="count">{describeNumber(toolCount(known))}</span> : null;
}

const themeItem = "junctor-theme";

function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(() => localStorage.getItem(themeItem) ?? "auto");
  useEffect(() => {
    localStorage.setItem(themeItem, theme);
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const isDark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  return (
    <button
      type="button"
      class="ghost small icon-only theme"
      aria-label={isDark ? "Light colours" : "Dark colours"}
      onClick={() => setTheme(isDark ? "light" : "dark")}
    >
      <Icon name={isDark ? "sun" : "moon"} />
    </button>
  );
}

const keyRows: readonly (readonly [string, string])[] = [
  ["Ctrl K", "find or do"],
  ["/", "search in this view"],
  ["j k", "down and up in a list"],
  ["Enter", "open"],
  ["Esc", "close, and back to the list"],
  ["?", "this list"],
];

function KeyList({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="keys" aria-label="Keys" onClose={onClose}>
      <h2>Keys</h2>
      <dl class="facts">
        {[...keyRows, ...viewRows.map(({ key, label }) => [`g ${key}`, label] as const)].map(
          ([key, does]) => (
            <div key={key}>
              <dt>
                {key.split(" ").map((each) => (
                  <kbd key={each}>{each}</kbd>
                ))}
              </dt>
              <dd>{does}</dd>
            </div>
          ),
        )}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
