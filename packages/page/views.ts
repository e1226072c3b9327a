import type { IconName } from "./icons.tsx";

/** A view in the navigation. */
export interface ViewRow {
  readonly name: string;
  readonly label: string;
  readonly icon: IconName;
  /** The key that opens it after `g`. */
  readonly key: string;
}

export const viewRows: readonly ViewRow[] = [
  { name: "overview", label: "Overview", icon: "overview", key: "o" },
  { name: "servers", label: "Servers", icon: "servers", key: "s" },
  { name: "tools", label: "Tools", icon: "tools", key: "t" },
  { name: "calls", label: "Calls", icon: "calls", key: "c" },
  { name: "callers", label: "Callers", icon: "callers", key: "a" },
  { name: "waiting", label: "Waiting", icon: "waiting", key: "w" },
  { name: "log", label: "Log", icon: "log", key: "l" },
  { name: "settings", label: "Settings", icon: "settings", key: "," },
];
