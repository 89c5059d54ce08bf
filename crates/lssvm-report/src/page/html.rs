//! Writing a page as HTML.
//!
//! The file allows itself nothing: its policy forbids all connections, so that
//! text from data files could do no harm even if it got through the escaping.
//! Drawings are there twice, wide and narrow; the style sheet shows the one
//! that fits.

use crate::colours::{Theme, variables};
use crate::escape::{Escaped, slug};
use crate::page::{Block, Gallery, Page, Section, Table, Tile};
use crate::svg::Canvas;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";

const STYLE: &str = include_str!("style.css");

const SCRIPT: &str = include_str!("save.js");

/// Sections from which on there is a list of them at the top.
const SECTIONS_WITH_LIST: usize = 3;

pub fn write(page: &Page) -> String {
    let title = Escaped(&page.title);
    let facts: String = page
        .facts
        .iter()
        .map(|fact| {
            let (name, value) = (Escaped(&fact.name), Escaped(&fact.value));
            format!("<div><dt>{name}</dt><dd>{value}</dd></div>")
        })
        .collect();
    let facts = match page.facts.is_empty() {
        true => facts,
        false => format!("<dl class=\"facts\">{facts}</dl>"),
    };
    let ids = anchors(&page.sections);
    let sections = page.sections.iter().zip(&ids);
    let body: String = sections.map(|(part, id)| section(part, id)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n:root{{{light}}}\n\
         @media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<header><h1>{title}</h1><p class=\"lead\">{lead}</p>{facts}{list}\
         </header>\n{body}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        light = variables(false),
        dark = variables(true),
        lead = Escaped(&page.lead),
        list = contents(&page.sections, &ids),
    )
}

/// An anchor for each section, no two the same.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for section in sections {
        let id = slug(&section.id);
        let mut unique = id.clone();
        let mut number = 2;
        while ids.contains(&unique) {
            unique = format!("{id}-{number}");
            number += 1;
        }
        ids.push(unique);
    }
    ids
}

fn contents(sections: &[Section], ids: &[String]) -> String {
    if sections.len() < SECTIONS_WITH_LIST {
        return String::new();
    }
    let links = sections.iter().zip(ids).map(|(section, id)| {
        let title = Escaped(&section.title);
        format!("<a href=\"#{id}\">{title}</a>")
    });
    let links: String = links.collect();
    format!("<nav aria-label=\"Sections\">{links}</nav>")
}

fn section(section: &Section, id: &str) -> String {
    let title = Escaped(&section.title);
    let text: String = section
        .text
        .iter()
        .map(|paragraph| format!("<p>{}</p>", Escaped(paragraph)))
        .collect();
    let blocks: String = section.blocks.iter().map(block).collect();
    format!(
        "<section id=\"{id}\"><h2>{title}</h2>{text}<div class=\"blocks\">{blocks}</div></section>\n"
    )
}

fn block(block: &Block) -> String {
    let (wide, narrow) = (Canvas::wide(Theme::Page), Canvas::narrow(Theme::Page));
    match block {
        Block::Plot(plot) => {
            let both = plot.draw(wide, "wide") + &plot.draw(narrow, "narrow");
            chart("plot", &plot.name, &both)
        }
        Block::Heatmap(map) => {
            let both = map.draw(wide, "wide") + &map.draw(narrow, "narrow");
            chart("heatmap", &map.name, &both)
        }
        Block::Table(table) => self::table(table),
        Block::Gallery(gallery) => self::gallery(gallery),
    }
}

fn chart(kind: &str, name: &str, drawings: &str) -> String {
    let name = slug(name);
    format!(
        "<figure class=\"chart {kind}\" data-name=\"{name}\">{drawings}<div class=\"save\">\
         <button type=\"button\" data-save=\"svg\" aria-label=\"Save {name} as SVG\">SVG</button>\
         <button type=\"button\" data-save=\"png\" aria-label=\"Save {name} as PNG\">PNG</button>\
         </div></figure>"
    )
}

/// Columns of a table that find room beside another block.
const NARROW_COLUMNS: usize = 5;

fn table(table: &Table) -> String {
    let class = |j: usize| match table.numeric.get(j) {
        Some(true) => " class=\"number\"",
        _ => "",
    };
    let header: String = table
        .header
        .iter()
        .enumerate()
        .map(|(j, name)| format!("<th scope=\"col\"{}>{}</th>", class(j), Escaped(name)))
        .collect();
    let cell = |(j, text): (usize, &String)| match j {
        0 => format!("<th scope=\"row\"{}>{}</th>", class(j), Escaped(text)),
        _ => format!("<td{}>{}</td>", class(j), Escaped(text)),
    };
    let rows: String = table
        .rows
        .iter()
        .map(|row| {
            let cells: String = row.iter().enumerate().map(cell).collect();
            format!("<tr>{cells}</tr>")
        })
        .collect();
    let caption = Escaped(&table.caption);
    let wide = match table.header.len() > NARROW_COLUMNS {
        true => " whole",
        false => "",
    };
    // Scrolls by itself if it is too wide; reachable by keyboard for that.
    format!(
        "<div class=\"table{wide}\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table>\
         <caption>{caption}</caption><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>\
         </div>"
    )
}

fn gallery(gallery: &Gallery) -> String {
    let title = Escaped(&gallery.title);
    let note = match &gallery.note {
        Some(note) => format!("<p class=\"note\">{}</p>", Escaped(note)),
        None => String::new(),
    };
    let tiles: String = gallery.tiles.iter().map(tile).collect();
    format!("<div class=\"gallery\"><h3>{title}</h3>{note}<div class=\"tiles\">{tiles}</div></div>")
}

fn tile(tile: &Tile) -> String {
    let title = Escaped(&tile.title);
    let alt = match (tile.title.as_str(), tile.caption.as_str()) {
        ("", caption) => Escaped(caption),
        (title, _) => Escaped(title),
    };
    let image = match tile.picture.data_uri() {
        Some(uri) => format!(
            "<img src=\"{uri}\" alt=\"{alt}\" width=\"{}\" height=\"{}\">",
            tile.picture.width, tile.picture.height
        ),
        None => "<span class=\"missing\">no picture</span>".into(),
    };
    let caption = match tile.caption.as_str() {
        "" => String::new(),
        caption => format!("<figcaption>{}</figcaption>", Escaped(caption)),
    };
    format!("<figure class=\"tile\" title=\"{title}\">{image}{caption}</figure>")
}
