/**
 * The ten calls that every client makes: tools of eight servers that work without a network and leave nothing behind that
 * another call would trip over.
 *
 * @param {import("./lib/world.mjs").World} world
 * @returns {import("./clients/contract.mjs").Call[]}
 */
export function calls({ desk }) {
  return [
    {
      tool: "everything__echo",
      arguments: { message: "hello from the field" },
      expect: "hello from the field",
    },
    { tool: "everything__get-sum", arguments: { a: 2, b: 40 }, expect: "42" },
    {
      tool: "files__read_text_file",
      arguments: { path: `${desk}/notes/todo.txt` },
      expect: "Call the plumber.",
    },
    { tool: "files__list_directory", arguments: { path: `${desk}/notes` }, expect: "todo.txt" },
    { tool: "memory__read_graph", arguments: {}, expect: "entities" },
    {
      tool: "sequential-thinking__sequentialthinking",
      arguments: { thought: "One step.", thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false },
      expect: "thoughtHistoryLength",
    },
    { tool: "git__git_log", arguments: { path: desk, maxCount: 1 }, expect: "Add notes" },
    {
      tool: "code-runner__run-code",
      arguments: { code: "console.log(6 * 7)", languageId: "javascript" },
      expect: "42",
    },
    { tool: "taskmanager__list_requests", arguments: {}, expect: "Requests List" },
    { tool: "shadcn__get_audit_checklist", arguments: {}, expect: "Component Audit Checklist" },
  ];
}
