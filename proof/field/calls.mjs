/**
 * The calls that every client makes, and that are made at the servers by themselves: tools that work without a network and
 * leave nothing behind that another call would trip over. The rest of the servers have no such tool.
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
    // It asks for roots first, and goes on without.
    { tool: "shrimp__list_tasks", arguments: { status: "all" }, expect: "split_tasks" },
    { tool: "n8n__search_nodes", arguments: { query: "webhook", limit: 2 }, expect: "webhook" },
    { tool: "postman__getEnabledTools", arguments: {}, expect: "currentServerTools" },
    { tool: "linear__linear_getServerStatus", arguments: {}, expect: "toolCount" },
    { tool: "ms365__list-accounts", arguments: {}, expect: '"count":0' },
    {
      tool: "echarts__generate_pie_chart",
      arguments: {
        data: [
          { category: "sun", value: 40 },
          { category: "rain", value: 2 },
        ],
        outputType: "option",
      },
      expect: '"name": "rain"',
    },
    { tool: "calculator__add", arguments: { a: 40, b: 2 }, expect: "42" },
    { tool: "time__days_in_month", arguments: { date: "2024-02-10" }, expect: "29" },
    {
      tool: "eslint__lint-files",
      arguments: { filePaths: [`${desk}/notes/rough.js`] },
      expect: "no-debugger",
    },
    { tool: "memory-bank__list_projects", arguments: {}, expect: "notes" },
    {
      tool: "repomix__pack_codebase",
      arguments: { directory: `${desk}/notes` },
      expect: "Successfully packed codebase",
    },
    { tool: "hello__add", arguments: { a: 40, b: 2 }, expect: "42" },
    {
      tool: "azure__get_azure_bestpractices",
      arguments: { intent: "list what there is", learn: true },
      expect: "available command",
    },
    { tool: "system-monitor__get-system-info", arguments: {}, expect: "totalBytes" },
    {
      tool: "postgrest__sqlToRest",
      arguments: { sql: "select * from books limit 2" },
      expect: "/books?limit=2",
    },
    { tool: "memory-libsql__read_graph", arguments: {}, expect: "entities" },
    { tool: "toolbox__execute_sql", arguments: { sql: "select 6 * 7 as answer" }, expect: "42" },
    { tool: "obsidian-old__search_notes", arguments: { query: "plan" }, expect: "plan.md" },
    {
      tool: "flowbite__generate-theme",
      arguments: { brandColor: "#336699", instructions: "Calm." },
      expect: "#336699",
    },
    { tool: "knowledge-graph__read_graph", arguments: {}, expect: "entities" },
  ];
}
