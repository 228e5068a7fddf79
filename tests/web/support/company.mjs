// A chat model that plays a company of six agents in English, for the pictures of the documentation. Each agent follows
// a script.

import { Fails, calling, chatModel, said, saying } from "./model.mjs";

export const PROMPT = "Here is our sales chart. Why was the third quarter so weak, and what should we plan for next year?";
export const QUESTION = "Should the plan be in euros or in units?";
export const ANSWER = "The plan for next year is ready";
/** A prompt that root answers alone. */
export const ALONE = "Which day of the week was the first of October 2025?";

const NUMBERS = "quarter,units,change\nQ1,42,\nQ2,57,+36 %\nQ3,31,-46 %\nQ4,78,+152 %\n";
const PLAN = `# Sales plan for next year

The third quarter lost **26 units** against the second. The market did not shrink: two customers moved their orders to October, and the fourth quarter has them.

| Quarter | This year | Next year | Why |
|:--------|----------:|----------:|:----|
| Q1 | 42 | 45 | as the market grows |
| Q2 | 57 | 60 | as the market grows |
| Q3 | 31 | 48 | the two orders come in September |
| Q4 | 78 | 68 | and not in October |

## What to do

1. Agree on **delivery dates** with both customers before June.
2. Order material for Q3 in July:
   - [x] ask the supplier for a price
   - [ ] sign the order
3. Compare with this plan at the end of each month.

\`\`\`python
def growth(before, after):
    return (after - before) / before
\`\`\`
`;

/**
 * The steps of each agent. Each tool result brings the agent to its next step. The agent repeats the last step. A step
 * returns either a tool call (the name of the tool and the arguments) or a text, which ends the turn.
 */
const SCRIPTS = {
  Root: [
    (know) => hire("Analyst", "Find out what the chart says about each quarter", know, { attachments: [know.picture] }),
    (know) => hire("Researcher", "Find out how the market did in the third quarter", know),
    (know) => hire("Planner", "Write the sales plan for next year", know, { local: true }),
    (know) => hire("Critic", "Look for weak points in the plan before it is sent", know, { local: true }),
    () => ["send_message", { to: "user", payload: { message_type: "collaboration_request", text: QUESTION } }],
    (know) => (["Plan written", "Sales fell", "The market grew", "The plan depends"].every((one) => know.heard.includes(one))
      ? `${ANSWER}: see [plan.md](${/Plan written: (artifact:\w+)/.exec(know.heard)[1]}). The third quarter was weak because two large orders moved to October.`
      : "Four agents are at work. I will put their answers together."),
  ],
  Analyst: [
    (know) => hire("Reader", "Read the numbers off the chart", know, { sees: true, attachments: [know.picture] }),
    (know) => (know.heard.includes("Q3 31") ? file("numbers.csv", NUMBERS) : "The Reader reads the chart for me."),
    () => ["put_artifact", { type: "table", content: NUMBERS, meta: { filename: "numbers.csv", mimeType: "text/csv" } }],
    (know) => `Sales fell by 46 % in Q3 and more than doubled in Q4: ${know.artifacts.at(-1)}`,
  ],
  Reader: [() => "The chart “Sales 2025” has four bars: Q1 42, Q2 57, Q3 31, Q4 78."],
  Researcher: [() => "The market grew by 5 % in the third quarter, so the market is not the reason."],
  Planner: [
    () => file("plan.md", PLAN),
    () => ["put_artifact", { type: "report", content: PLAN, meta: { filename: "plan.md", mimeType: "text/markdown" } }],
    (know) => `Plan written: ${know.artifacts.at(-1)}`,
  ],
  Critic: [() => "The plan depends on two customers. Agree on delivery dates first."],
};

/**
 * Starts the model's server. The Reader and the Planner do not answer until the test calls `release` with their name.
 * The first request of the Researcher fails. So the Researcher pauses before the next attempt.
 */
export async function company() {
  const held = { Reader: gate(), Planner: gate() };
  let failed = false;
  const model = await chatModel(async (messages) => {
    const name = Object.keys(SCRIPTS).find((one) => said(messages[0]).includes(`You are the ${one}.`)) ?? "Root";
    if (name === "Researcher" && !failed) {
      failed = true;
      throw new Fails(503, "The model is being loaded.");
    }
    await held[name]?.opened;
    const alone = name === "Root" && !messages.some((message) => said(message).includes(PROMPT));
    return alone ? saying("It was a Wednesday.") : next(SCRIPTS[name], messages);
  });
  return { ...model, release: (name) => held[name].open() };
}

function gate() {
  let open;
  const opened = new Promise((resolve) => { open = resolve; });
  return { open, opened };
}

/** Returns the next message of an agent, according to the number of tool results that the agent has. */
function next(script, messages) {
  const done = messages.filter((message) => message.role === "tool").length;
  const heard = messages.slice(1).map(said).join("\n");
  const artifacts = heard.match(/artifact:[a-z0-9]{6,}/g) ?? [];
  const step = script[Math.min(done, script.length - 1)]({ heard, artifacts, picture: artifacts[0] });
  return typeof step === "string" ? saying(step) : calling(step);
}

function file(path, text) {
  return ["str_replace_editor", { command: "create", path, file_text: text }];
}

function hire(name, objective, know, { attachments = [], sees = false, local = false } = {}) {
  return ["spawn_agent_with_task", {
    role: { name, rolePrompt: `You are the ${name}.`, requiredCapabilities: [...(sees ? ["vision"] : []), ...(local ? ["local"] : [])] },
    taskBrief: { objective, constraints: ["Use only what the task gives you"], inputs: "The chart of the person", outputs: "A short text", completion_criteria: "Every claim has a number" },
    initialMessage: { text: `${objective}.`, attachments },
  }];
}
