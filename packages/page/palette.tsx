import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CatalogReport, ServerReport } from "../junctor/src/admin/answers.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Badge, messageOf } from "./parts.tsx";
import { go, pathOf } from "./route.ts";
import { badgeOf, isTrouble, type Store, useKnown, useLoaded } from "./store.ts";
import { viewRows } from "./views.ts";

interface Entry {
  readonly group: string;
  readonly icon: IconName;
  readonly text: string;
  readonly note?: JSX.Element | string | undefined;
  readonly act: () => unknown;
}

const maxOfGroup = 4;
const maxShown = 12;

/** Finds servers, tools and views, and runs actions, by a few letters. */
export function Palette({
  store,
  onClose,
}: {
  readonly store: Store;
  readonly onClose: () => void;
}): JSX.Element {
  const { servers, catalogVersion } = useKnown(store);
  const catalog = useLoaded<CatalogReport>(store.api, "/api/catalog", catalogVersion);
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const [trouble, setTrouble] = useState<string>();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const tools = catalog.kind === "loaded" ? catalog.value.tools : [];
  const entries = useMemo(() => find(words, toEntries(store, servers, tools)), [words, servers, tools]);
  const at = Math.min(chosen, entries.length - 1);
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    Promise.resolve(entry.act()).then(onClose, (error: unknown) => setTrouble(messageOf(error)));
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setChosen((at + step + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter") run(entries[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find or do"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="search">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={`found-${at}`}
          aria-label="Find or do"
          placeholder="A server, a tool, a view…"
          value={words}
          onInput={({ currentTarget }) => {
            setWords(currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKey}
        />
        <kbd aria-hidden="true">Esc</kbd>
      </div>
      <div id="found" role="listbox" aria-label="Found" class="found">
        {entries.map((entry, index) => (
          <div key={`${entry.group} ${entry.text}`}>
            {entry.group !== entries[index - 1]?.group && (
              <p class="group" role="presentation">
                {entry.group}
              </p>
            )}
            <div
              id={`found-${index}`}
              role="option"
              aria-selected={index === at}
              class="option"
              onClick={() => run(entry)}
              onPointerMove={() => setChosen(index)}
            >
              <Icon name={entry.icon} />
              <Marked text={entry.text} words={words} />
              <span class="side">{entry.note}</span>
            </div>
          </div>
        ))}
        {entries.length === 0 && <p class="none">Nothing here is called that.</p>}
      </div>
      {trouble !== undefined && (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      <footer>
        <span class="hint">
          <kbd>↑</kbd>
          <kbd>↓</kbd> choose
        </span>
        <span class="hint">
          <kbd>↵</kbd> open
        </span>
      </footer>
    </dialog>
  );
}

/** A text with the typed letters highlighted. */
function Marked({ text, words }: { readonly text: string; readonly words: string }): JSX.Element {
  const word = words.trim().split(/\s+/)[0]?.toLowerCase() ?? "";
  const at = word === "" ? -1 : text.toLowerCase().indexOf(word);
  if (at < 0) return <span class="text">{text}</span>;
  return (
    <span class="text">
      {text.slice(0, at)}
      <mark>{text.slice(at, at + word.length)}</mark>
      {text.slice(at + word.length)}
    </span>
  );
}

function toEntries(
  store: Store,
  servers: readonly ServerReport[],
  tools: CatalogReport["tools"],
): readonly Entry[] {
  const act = (name: string, what: string) => () =>
    store.api.send("POST", `/api/servers/${encodeURIComponent(name)}/${what}`);
  return [
    ...servers.map((server): Entry => {
      const { tone, word } = badgeOf(server);
      const note = isTrouble(server) ? (
        <Badge tone={tone}>
          {word}: {server.cause?.text}
        </Badge>
      ) : (
        <span class="quiet">{word}</span>
      );
      return {
        group: "Servers",
        icon: "servers",
        text: server.name,
        note,
        act: () => go(pathOf(server.name)),
      };
    }),
    ...servers.flatMap((server): readonly Entry[] => [
      ...(server.canRestart === true
        ? [
            {
              group: "Do",
              icon: "restart" as const,
              text: `${server.status === "up" ? "Restart" : "Start"} ${server.name} now`,
              act: act(server.name, server.status === "up" ? "restart" : "start"),
            },
          ]
        : []),
      {
        group: "Do",
        icon: "calls",
        text: `Show failed calls of ${server.name}`,
        act: () => go("calls", { is: "failed", server: server.name }),
      },
    ]),
    ...tools.map(({ name, server }): Entry => ({
      group: "Tools",
      icon: "tools",
      text: name,
      note: server,
      act: () => go(`tools/${encodeURIComponent(`tool:${name}`)}`),
    })),
    ...viewRows.map(({ name, label, icon, key }): Entry => ({
      group: "Views",
      icon,
      text: label,
      note: `g ${key}`,
      act: () => go(name),
    })),
  ];
}

/** The entries with every word, by group; in a group, texts that begin with the first word come first. */
function find(words: string, entries: readonly Entry[]): readonly Entry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) {
    const ofGroup = (group: string): readonly Entry[] => entries.filter((entry) => entry.group === group);
    return [...ofGroup("Servers").slice(0, maxOfGroup), ...ofGroup("Views")];
  }
  const score = ({ text }: Entry): number => {
    const lower = text.toLowerCase();
    if (!wanted.every((word) => lower.includes(word))) return -1;
    return lower.startsWith(wanted[0] ?? "")
      ? 2
      : /[\s_./-]/.test(lower[lower.indexOf(wanted[0] ?? "") - 1] ?? " ")
        ? 1
        : 0;
  };
  const scored = entries.map((entry) => ({ entry, score: score(entry) })).filter((each) => each.score >= 0);
  const groups = ["Servers", "Do", "Tools", "Views"];
  return groups
    .flatMap((group) =>
      scored
        .filter(({ entry }) => entry.group === group)
        .toSorted((one, other) => other.score - one.score)
        .slice(0, maxOfGroup)
        .map(({ entry }) => entry),
    )
    .slice(0, maxShown);
}
