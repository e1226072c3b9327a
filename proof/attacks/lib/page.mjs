// Writes docs/evidence/reliability.md from docs/evidence/reliability.json.

/** Puts the results of this run over those of earlier runs. A row that is no longer there goes. */
export function mergeResults(earlier, rows, names) {
  const all = { ...earlier.rows, ...rows };
  return { rows: Object.fromEntries(names.flatMap((name) => (all[name] ? [[name, all[name]]] : []))) };
}

/** The page as Markdown. `names` are all rows; those without figures are named. */
export function renderPage({ rows }, names) {
  const all = Object.values(rows);
  const lines = all.flatMap((row) => row.lines);
  const red = lines.filter(({ isMet }) => !isMet);
  const missing = names.filter((name) => !(name in rows));
  return [
    "# Reliability",
    "",
    "<!-- Written by `npm run proof -- attacks`. -->",
    "",
    "Attacks and faults at full scale, against real processes and sockets unless a table says otherwise. `npm run proof -- attacks` runs all of",
    "them and writes this page, `npm run proof -- attacks --only NAME` runs one table and puts its figures here; `-- --short` is the version for",
    "CI, which writes nothing. [threat-model.md](../threat-model.md) says which threat each table answers.",
    "",
    `**${lines.length - red.length} of ${lines.length} bounds are met.**${red.length === 0 ? "" : " Not met:"}`,
    ...red.map(({ what, figure }) => `\n- ${what}: ${figure}`),
    "",
    ...(missing.length === 0 ? [] : [`Rows without figures of a full run: ${missing.join(", ")}.`, ""]),
    ...Object.entries(rows).flatMap(([name, row]) => renderRow(name, row)),
  ].join("\n");
}

function renderRow(name, { title, how, lines, date, commit, node, machine, seconds }) {
  return [
    `## ${title}`,
    "",
    how,
    "",
    "| done | how often | bound | figure | |",
    "|---|---|---|---|---|",
    ...lines.map((line) => {
      const cells = [line.what, line.count, line.bound, line.figure, line.isMet ? "met" : "**not met**"];
      return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
    }),
    "",
    `\`npm run proof -- attacks --only ${name}\`: ${date}, commit ${commit}, Node ${node}, ${machine}, ${Math.round(seconds)} s.`,
    "",
  ];
}
