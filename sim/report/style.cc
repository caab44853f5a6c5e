#include "style.h"

#include <fmt/format.h>

#include <array>

namespace weir::sim_report {
namespace {

constexpr std::array<Ink, 4> kGrounds = {{
    {"#ffffff", "#14171a"},
    {"#1b1f24", "#e7eaed"},
    {"#5b6470", "#9aa5b1"},
    {"#e3e6ea", "#2c3238"},
}};
constexpr std::array<std::string_view, 4> kGroundNames = {"bg", "fg", "dim",
                                                          "line"};

constexpr std::array<Ink, 6> kLineInks = {{
    {"#0072b2", "#56b4e9"},
    {"#b84f00", "#f0813a"},
    {"#007a59", "#2cc295"},
    {"#a34a80", "#e39bc3"},
    {"#8a6200", "#e69f00"},
    {"#4a4a4a", "#c9ccd1"},
}};

// In quarters of a pixel, as charts are drawn.  No two neighbours in both
// colour and dash; the first is the one the page is about: whole, and broader.
constexpr std::array<std::string_view, 6> kDashes = {
    "none", "26 12", "8 9", "34 10 8 10", "16 8", "4 8"};

// Areas of sheds, the most critical class first: from what alarms to what is
// meant to be shed.  Falling contrast, so that they differ without colour too.
constexpr std::array<Ink, 4> kClassInks = {{
    {"#b84f00", "#f0813a"},
    {"#e6a93a", "#c98a12"},
    {"#7fb8d9", "#2f7ba6"},
    {"#cdd9e2", "#3c4a56"},
}};

// Cells of the overview, from nearly ideal to far from it.
constexpr std::array<Ink, 5> kShades = {{
    {"transparent", "transparent"},
    {"#fdf1e6", "#231e1a"},
    {"#fbe0c9", "#33251a"},
    {"#f6c9a3", "#4b301b"},
    {"#eeae7b", "#663d1c"},
}};

std::string Variables(bool dark) {
  std::string css;
  const auto add = [&](std::string_view name, const Ink& ink) {
    css += fmt::format("--{}:{};", name, dark ? ink.dark : ink.light);
  };
  for (size_t i = 0; i < kGrounds.size(); ++i)
    add(kGroundNames[i], kGrounds[i]);
  const auto add_all = [&](char letter, std::span<const Ink> inks) {
    for (size_t i = 0; i < inks.size(); ++i) {
      add(fmt::format("{}{}", letter, i), inks[i]);
    }
  };
  add_all('c', kLineInks);
  add_all('k', kClassInks);
  add_all('q', kShades);
  return css;
}

constexpr std::string_view kRules = R"(
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:78rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.75rem;line-height:1.2;font-weight:650;letter-spacing:-.01em;margin:.5rem 0 .6rem}
h2{font-size:1.2rem;font-weight:650;margin:2.6rem 0 .5rem}
h3{font-size:1rem;font-weight:650;margin:2rem 0 .4rem}
p{margin:.4rem 0;max-width:46rem}a{color:var(--c0)}
.lead{font-size:1.125rem;line-height:1.5}.dim,small,caption,figcaption span{color:var(--dim)}
.num{white-space:nowrap}.vh{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
code{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
pre{margin:.3rem 0;padding:.55rem .75rem;border:1px solid var(--line);border-radius:6px;white-space:pre-wrap;user-select:all;max-width:max-content}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1.2rem;margin:.7rem 0}
dt{color:var(--dim)}dd{margin:0;min-width:0}
.study{border-top:1px solid var(--line)}.study:last-of-type{border-bottom:1px solid var(--line)}
.study>summary{cursor:pointer;padding:.8rem .1rem;list-style:none;display:grid;
grid-template-columns:1.2rem minmax(0,1fr);align-items:baseline}
.study>summary::-webkit-details-marker{display:none}
.study>summary::before{content:"";width:.42rem;height:.42rem;border:solid var(--dim);border-width:0 2px 2px 0;transform:rotate(-45deg)}
.study[open]>summary::before{transform:rotate(45deg)}
summary h2{margin:0;display:inline}summary p{margin:.1rem 0 0;grid-column:2;max-width:none}
summary:focus-visible,a:focus-visible,input:focus-visible,.scroll:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
.body{padding:0 0 2.2rem}.only{border:0!important}
/* A shadow at the side where there is more, which scrolls away with its cover. */
.scroll{overflow-x:auto;margin:.6rem 0 1.4rem;-webkit-overflow-scrolling:touch;background:linear-gradient(90deg,var(--bg),transparent) 0/2rem 100% local no-repeat,
linear-gradient(270deg,var(--bg),transparent) 100%/2rem 100% local no-repeat,linear-gradient(90deg,rgb(128 128 128/.4),transparent) 0/.7rem 100% no-repeat,linear-gradient(270deg,rgb(128 128 128/.4),transparent) 100%/.7rem 100% no-repeat}
table{border-collapse:collapse;font-size:.875rem;line-height:1.35;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 .4rem;font-size:.875rem;line-height:1.45}
caption span{display:block;position:sticky;left:0;width:max-content;max-width:min(46rem,calc(100vw - 2rem))}
th,td{padding:.32rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line);vertical-align:baseline}
thead th{font-weight:600;vertical-align:bottom;white-space:normal;line-height:1.25}
thead small{display:block;font-weight:400;white-space:nowrap}
tbody th{font-weight:400}td small{display:block;line-height:1.1}
th:first-child{text-align:left;position:sticky;left:0;background:var(--bg);padding-left:0;z-index:1}
.ours th,.ours td{font-weight:650}.ours small,.best small{font-weight:400}
.best{font-weight:700}.best::before{content:"\2605\2009";color:var(--c0)}
td.gap,th.gap{padding-left:1.6rem}
.matrix td{padding:.3rem .4rem;text-align:center}.matrix .best::before{content:"\2605"}
th.name,td.name{text-align:left}th[scope=colgroup]{text-align:center;border:0}.matrix thead th:first-child{padding-left:0}
.matrix thead th:not(:first-child){vertical-align:bottom;font-weight:400;text-align:left;padding:.2rem .3rem}
.matrix thead th a{writing-mode:vertical-rl;transform:rotate(180deg);color:inherit;text-decoration:none;max-height:13rem;white-space:nowrap}
.matrix thead th a:hover{text-decoration:underline}
.q1{background:var(--q1)}.q2{background:var(--q2)}.q3{background:var(--q3)}.q4{background:var(--q4)}
.key{display:inline-block;min-width:3.2em;padding:.05rem .4rem;margin-right:.35rem;text-align:center;color:var(--fg);border:1px solid var(--line)}
.pick{border:0;margin:1.2rem 0 .4rem;padding:0;font-size:.9rem;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem}
.pick legend{padding:0;color:var(--dim)}.pick label{display:inline-flex;align-items:center;gap:.4rem;min-height:1.75rem}
.pick input{margin:0;width:1rem;height:1rem;accent-color:var(--c0)}
.pick details{flex-basis:100%}.pick details[open]{display:block}.pick details div{display:flex;flex-wrap:wrap;gap:.15rem 1.1rem}
.pick summary{cursor:pointer;color:var(--dim)}
.swatch{width:34px;height:10px;flex:none}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,21rem),1fr));gap:1.4rem 1.6rem;margin:.8rem 0}
figure{margin:0;min-width:0;break-inside:avoid}figcaption{font-weight:600;font-size:.95rem;line-height:1.35}
figcaption span{font-weight:400;font-size:.875rem;margin-left:.35em}figure p{font-size:.8125rem;margin:.15rem 0;color:var(--dim)}
.plot{width:100%;height:auto;display:block;overflow:visible}
.plot text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;fill:var(--dim)}
.plot .y{text-anchor:end}.plot .x{text-anchor:middle}
.grid{stroke:var(--line);fill:none}.phase{stroke:var(--dim);stroke-dasharray:1 3;fill:none;opacity:.8}
.l{fill:none;stroke-width:6.5;stroke-linejoin:round;stroke-linecap:butt}
.lead1{fill:none;stroke-width:.8;opacity:.6}
.ref{fill:var(--dim);fill-opacity:.16;stroke:none}.refline{fill:none;stroke:var(--dim);stroke-width:4}
.due{stroke:var(--fg);stroke-dasharray:2 3;fill:none}
.plot .in{paint-order:stroke;stroke:var(--bg);stroke-width:3px}
.plot rect{stroke:none}.area{stroke:var(--bg);stroke-width:2}
.k0{fill:var(--k0)}.k1{fill:var(--k1)}.k2{fill:var(--k2)}.k3{fill:var(--k3)}
.chips{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:.8125rem;color:var(--dim);margin:.2rem 0;max-width:none}
.chips svg{width:.8em;height:.8em;margin-right:.35em;vertical-align:-.05em;border:1px solid var(--dim)}
.strips{max-width:29rem;margin:1.6rem 0}.dots circle{fill-opacity:.85;stroke:var(--bg);stroke-width:.75}
footer{margin-top:2.5rem;font-size:.875rem;color:var(--dim)}
@media(max-width:30rem){body{padding:1rem .9rem 3rem}h1{font-size:1.5rem}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.45rem}.matrix td{padding:.3rem .35rem}
th,td{padding:.32rem .5rem}th:first-child{min-width:6.5rem;max-width:8rem;overflow-wrap:break-word;white-space:normal}}
@media(hover:hover){tbody tr:hover td,tbody tr:hover th{background:color-mix(in srgb,var(--c0) 8%,var(--bg))}}
)";

// Paper is white whatever the screen is, and nothing on it can be unfolded or
// scrolled.
constexpr std::string_view kPrintRules = R"(
@page{margin:13mm 11mm}
html{font-size:9pt}
body{max-width:none;padding:0;font-size:9.5pt;background:none}
h1,h2,h3,h2+p,h3+p,.chips,.pick,figcaption,summary{break-after:avoid}
main>h2:has(+.study),.study+.study{break-before:page}.study,.study:last-of-type{border:0}
.study::details-content,.goals::details-content{content-visibility:visible;display:block}
.study>summary::before{display:none}.study>summary{display:block}.goals>summary{list-style:none}
.pick legend,.pick input,.pick details>summary,.screen{display:none}
.pick label:has(input:not(:checked)){display:none}
.charts{grid-template-columns:1fr 1fr;gap:8pt 14pt}.scroll{overflow:visible;background:none;break-inside:avoid}caption span{max-width:46rem}
table{font-size:7.6pt}th,td{padding:1.6pt 3.2pt}td.gap,th.gap{padding-left:6pt}th:first-child{position:static}
thead{display:table-header-group}tr,pre,dl{break-inside:avoid}
.matrix{font-size:6.6pt}.matrix td{padding:1.4pt 1.8pt}.q1,.q2,.q3,.q4,.key,svg{-webkit-print-color-adjust:exact;print-color-adjust:exact}
a{color:inherit;text-decoration:none}
)";

constexpr std::string_view kScript = R"(<script>
(function(){
var folded=document.querySelectorAll("details.study,details.goals"),closed=[];
addEventListener("beforeprint",function(){folded.forEach(function(d){if(!d.open){d.open=true;closed.push(d)}})});
addEventListener("afterprint",function(){closed.forEach(function(d){d.open=false});closed=[]});
function follow(){var d=location.hash&&document.getElementById(location.hash.slice(1));
if(d&&d.tagName==="DETAILS"){d.open=true;d.scrollIntoView()}}
addEventListener("hashchange",follow);follow();
document.addEventListener("click",function(e){var a=e.target.closest("a[href^='#']");
if(a&&a.hash===location.hash)follow()});
})();
</script>
)";

}  // namespace

std::span<const Ink> Grounds() { return kGrounds; }
std::span<const Ink> LineInks() { return kLineInks; }
std::span<const Ink> Shades() { return kShades; }

size_t InkOfStyle(size_t style) { return style % kLineInks.size(); }
size_t DashOfStyle(size_t style) {
  return (style + style / kLineInks.size()) % kDashes.size();
}

std::string StyleSheet(size_t algorithms) {
  std::string css = ":root{color-scheme:light dark;" + Variables(false) +
                    "}\n@media screen and (prefers-color-scheme:dark){:root{" +
                    Variables(true) + "}}";
  css += kRules;
  for (size_t style = 0; style < kStyles; ++style) {
    css += fmt::format(".s{0} .l,.s{0} .lead1{{stroke:var(--c{1})}}", style,
                       InkOfStyle(style));
    css += fmt::format(".s{0} .l{{stroke-dasharray:{1}}}", style,
                       kDashes[DashOfStyle(style)]);
    css += fmt::format(".plot .s{0} text,.s{0} circle{{fill:var(--c{1})}}\n",
                       style, InkOfStyle(style));
  }
  css += ".s0 .l{stroke-width:9}.plot .s0 text{font-weight:650}\n";
  css += fmt::format(
      ".s{0} .l{{stroke:var(--fg)}}.s{0} circle{{fill:var(--dim)}}\n",
      kPlainStyle);
  // Check boxes work without a script.
  for (size_t i = 0; i < algorithms; ++i) {
    css += fmt::format(
        ".study:has(.t{0}:not(:checked)) .a{0}{{display:none}}\n", i);
  }
  css += "@supports not selector(:has(a)){.extra{display:none}}\n@media print{";
  css += kPrintRules;
  css += "}\n";
  return css;
}

std::string_view Script() { return kScript; }

}  // namespace weir::sim_report
