"""A complete HTML document around the tables of a result: style, and sorting by a click."""

from __future__ import annotations

from layerscope.escaping import html

STYLE = """
:root { color-scheme: light dark; --line: #d0d4da; --soft: #f4f6f8; --ink: #1b1f24; --dim: #57606a }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a414a; --soft: #1b2027; --ink: #e6e9ed; --dim: #9aa4af }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); margin: 2rem auto; max-width: 90rem;
  padding: 0 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
.scroll { overflow-x: auto }
table { width: auto; margin: .5rem 0 1rem }
th { background: var(--soft); position: sticky; top: 0; white-space: nowrap; cursor: pointer }
th[aria-sort=ascending]::after { content: " ▲" }
th[aria-sort=descending]::after { content: " ▼" }
td { border-top: 1px solid var(--line); white-space: nowrap }
tr:hover td { background: var(--soft) }
p, li { color: var(--dim); overflow-wrap: anywhere; max-width: 65rem }
summary { cursor: pointer; margin: .5rem 0 }
@media print { body { margin: 0; max-width: none } th { position: static } }
"""

# A click on a title sorts the rows: numbers by size, whatever their unit, else texts. The text
# under a row stays with it, and a third click restores the order.
SCRIPT = r"""
const units = {k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, m: 1e-3, u: 1e-6}
function size(text) {
  const found = /^[≥≤×<+−\s]*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*([kKMGTPEmu]?)/.exec(text)
  return found ? +found[1].replaceAll(",", "") * (units[found[2]] || 1) : NaN
}
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], groups = []
  for (const row of body.rows) {
    if (row.cells.length === 1 && groups.length) groups.at(-1).push(row)
    else groups.push([row])
  }
  const titles = [...table.tHead.rows[0].cells]
  titles.forEach((title, n) => {
    const sort = () => {
      const next = {ascending: "none", descending: "ascending"}
      const way = next[title.getAttribute("aria-sort")] || "descending"
      titles.forEach(each => each.removeAttribute("aria-sort"))
      if (way !== "none") title.setAttribute("aria-sort", way)
      const sign = way === "descending" ? -1 : 1
      const text = group => group[0].cells[n].textContent.trim()
      const order = way === "none" ? groups : [...groups].sort((a, b) => {
        const [x, y] = [size(text(a)), size(text(b))]
        if (isNaN(x) || isNaN(y)) {
          if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1
          return sign * text(a).localeCompare(text(b))
        }
        return sign * (x - y)
      })
      body.append(...order.flat())
    }
    title.tabIndex = 0
    title.addEventListener("click", sort)
    title.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort() }
    })
  })
}
"""


def page(title: str, body: str) -> str:
    """An HTML document that needs no other file."""
    heading = html(title)
    scrolled = body.replace("<table", '<div class="scroll"><table').replace(
        "</table>", "</table></div>"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{heading}</h1>\n{scrolled}<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
