import type { JSX } from "preact";

/** Paths in a square of 16, drawn as lines. */
const paths = {
  overview: "M2.5 11.5a5.5 5.5 0 1 1 11 0M8 11.5l2.5-4M2.5 13.5h11",
  servers: "M3 2.8h10v4.4H3zM3 8.8h10v4.4H3zM5.2 5h.01M5.2 11h.01",
  tools:
    "M9.8 2.6a3.6 3.6 0 0 0-3.4 4.8L2.6 11.2a1.6 1.6 0 0 0 2.2 2.2l3.8-3.8a3.6 3.6 0 0 0 4.7-4.4L11.2 7.3 8.7 4.8l2.1-2.1a3.6 3.6 0 0 0-1-.1z",
  calls: "M2.5 5.5h11L11 3M13.5 10.5h-11L5 13",
  callers:
    "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5v-1a3 3 0 0 1 3-3h3a3 3 0 0 1 3 3v1M11 2.8a2.5 2.5 0 0 1 0 4.5M12.5 9.8a3 3 0 0 1 2 2.8v.9",
  waiting: "M2.5 9.5 4.2 3h7.6l1.7 6.5v3.5h-11zM2.5 9.5H6l1 1.8h2l1-1.8h3.5",
  log: "M2.5 4h11M2.5 8h6.5M2.5 12h9",
  settings: "M2 4.5h6.5M11.5 4.5H14M2 11.5h2.5M7.5 11.5H14M10 3v3M6 10v3",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  moon: "M13.2 9.8A5.6 5.6 0 0 1 6.2 2.8a5.6 5.6 0 1 0 7 7z",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  right: "M6 3.5 10.5 8 6 12.5",
  left: "M10 3.5 5.5 8 10 12.5",
  up: "M3.5 10 8 5.5 12.5 10",
  down: "M3.5 6 8 10.5 12.5 6",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  danger: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.6M8 10.9v.1",
  warning: "M8 2.5 14.2 13H1.8zM8 6.5v3M8 11.2v.1",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.4V11M8 5v.1",
  restart: "M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5",
  stop: "M4.5 4.5h7v7h-7z",
  play: "M5 3.2 12 8l-7 4.8z",
  plus: "M8 3v10M3 8h10",
  check: "M3 8.5 6.5 12 13 4.5",
  edit: "M3 13l.6-2.8 7.2-7.2 2.2 2.2-7.2 7.2z",
  key: "M10.2 9.2a3.4 3.4 0 1 0-3.4-3.4l.2 1.2-4.5 4.5V13.5H5v-1.6h1.6v-1.6L8.8 9z",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.6",
  hand: "M4.5 8.5V4.2a1 1 0 0 1 2 0V3a1 1 0 0 1 2 0v.6a1 1 0 0 1 2 0v1a1 1 0 0 1 2 0v4.6a4.3 4.3 0 0 1-8 2.2L2.8 9.2a1 1 0 0 1 1.7-1z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  file: "M4 2.5h5.5L12 5v8.5H4zM9 2.5V5.5h3",
} as const;

export type IconName = keyof typeof paths;

/** A drawing beside a word, hidden from screen readers: it says nothing that the word does not. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" width={size} height={size} aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** Two trunks of a crossbar switch; a line leaves the closed crosspoint and turns away. */
export function Mark({ size = 24 }: { readonly size?: number }): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true">
      <path class="trunk" d="M2 7.5h20M2 14h20" />
      <path class="line" d="M14 7.5V17a4 4 0 0 1-4 4H7.5" />
      <circle class="point" cx="14" cy="6.5" r="3.6" />
    </svg>
  );
}
