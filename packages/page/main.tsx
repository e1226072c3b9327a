import { type JSX, render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { createApi, keepKey, takeKey } from "./api.ts";
import { Callers } from "./callers.tsx";
import { Calls } from "./calls.tsx";
import { Charts } from "./charts.tsx";
import { Log } from "./log.tsx";
import { ParkedView } from "./parked.tsx";
import { Badge } from "./parts.tsx";
import { ProblemsView } from "./problems.tsx";
import { type Route, useRoute } from "./route.ts";
import { Servers } from "./servers.tsx";
import { createStore, type Known, type Store, useKnown } from "./store.ts";
import { Tools } from "./tools.tsx";

type View = (props: { readonly store: Store; readonly route: Route }) => JSX.Element;

const views: { readonly [name: string]: { readonly label: string; readonly View: View } } = {
  servers: { label: "Servers", View: Servers },
  tools: { label: "Tools", View: Tools },
  calls: { label: "Calls", View: Calls },
  charts: { label: "Charts", View: Charts },
  parked: { label: "Parked", View: ParkedView },
  callers: { label: "Callers", View: Callers },
  problems: { label: "Problems", View: ProblemsView },
  log: { label: "Log", View: Log },
};

function Page(): JSX.Element {
  const [key, setKey] = useState(takeKey);
  useEffect(() => {
    // An address with another key, opened in the same tab, does not load the page again.
    const onMove = (): void => setKey(takeKey);
    addEventListener("hashchange", onMove);
    return () => removeEventListener("hashchange", onMove);
  }, []);
  return key === undefined ? <KeyForm onKey={setKey} /> : <Gateway key={key} apiKey={key} onKey={setKey} />;
}

interface KeyProps {
  readonly onKey: (key: string) => void;
  readonly isRefused?: boolean;
}

/** Asks for the key of a gateway: of another run, or one that stands in its config. */
function KeyForm({ onKey, isRefused = false }: KeyProps): JSX.Element {
  const [key, setKey] = useState("");
  return (
    <main class="alone">
      <h1>Junctor</h1>
      {isRefused && (
        <p class="trouble" role="alert">
          The gateway does not know this key.
        </p>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepKey(key);
          onKey(key);
        }}
      >
        <div class="field">
          <label for="key">Admin key</label>
          <p class="hint" id="key-hint">
            The gateway prints an address with the key when it starts; a config may set one as
            junctor.admin.key.
          </p>
          <input
            id="key"
            type="password"
            autocomplete="off"
            aria-describedby="key-hint"
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </div>
        <button type="submit" class="main" disabled={key === ""}>
          Open
        </button>
      </form>
    </main>
  );
}

function Gateway({ apiKey, onKey }: Pick<KeyProps, "onKey"> & { readonly apiKey: string }): JSX.Element {
  const store = useMemo(() => createStore(createApi(apiKey)), [apiKey]);
  useEffect(() => () => store.stop(), [store]);
  const known = useKnown(store);
  const route = useRoute();
  if (known.link === "refused") return <KeyForm onKey={onKey} isRefused />;
  const { View } = (Object.hasOwn(views, route.view) ? views[route.view] : undefined) ?? { View: NoView };
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <Banner known={known} />
      <nav aria-label="Views">
        <ul>
          {Object.entries(views).map(([name, { label }]) => (
            <li key={name}>
              <a href={`#/${name}`} aria-current={name === route.view ? "page" : undefined}>
                {label}
                {countOf(name, known)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="content" tabIndex={-1}>
        <View key={route.view} store={store} route={route} />
      </main>
    </>
  );
}

/** Without this, the part after `#` would be taken for a view. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function NoView({ route }: { readonly route: Route }): JSX.Element {
  return <p>There is no view named {route.view}.</p>;
}

function countOf(view: string, { parked, problems }: Known): JSX.Element | undefined {
  const count =
    view === "parked"
      ? parked.parked.length + parked.more
      : view === "problems"
        ? problems.problems.length
        : 0;
  return count === 0 ? undefined : <span class="count"> {count}</span>;
}

const linkTexts: { readonly [link in Known["link"]]: string } = {
  live: "",
  connecting: "Connecting…",
  lost: "The gateway does not answer; trying again…",
  full: "Too many pages of this gateway are open: close one. Trying again…",
  refused: "",
};

function Banner({ known: { status, link } }: { readonly known: Known }): JSX.Element {
  return (
    <header class="banner">
      <strong>Junctor</strong>
      {status !== undefined && <Badge state={status.state} />}
      <span class="address">{status?.url ?? ""}</span>
      <span role="status">{linkTexts[link]}</span>
      <ThemeChoice />
    </header>
  );
}

const themes = ["auto", "light", "dark"] as const;
const themeItem = "junctor-theme";

function ThemeChoice(): JSX.Element {
  const [theme, setTheme] = useState(() => localStorage.getItem(themeItem) ?? "auto");
  useEffect(() => {
    localStorage.setItem(themeItem, theme);
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select value={theme} onChange={({ currentTarget }) => setTheme(currentTarget.value)}>
        {themes.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

const root = document.getElementById("root");
if (root !== null) render(<Page />, root);
