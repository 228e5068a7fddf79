//! What control words mean for the text.

/// What a control word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is a character.
    Character(char),
    /// It ends a line.
    Line,
    /// It ends a row of a table.
    Row,
    /// Its number is a unit of UTF-16.
    Unicode,
    /// Its number says how many characters follow such a unit for readers that do not know it.
    StandIns,
    /// Its number is the code page of the document.
    CodePage,
    /// The document was written on an old Macintosh.
    MacRoman,
    /// The group is the list of fonts.
    Fonts,
    /// Its number names the font.
    Font,
    /// Its number names the font of text that names none.
    DefaultFont,
    /// Its number is the character set of the font that is being listed.
    FontCharset,
    /// Its number is the code page of that font.
    FontCodePage,
    /// What follows is not shown, or is again.
    Hidden,
    /// What follows was deleted while changes were tracked, or was not.
    Deleted,
    /// What follows looks as by default.
    Plain,
    /// The group is no text.
    NoText,
    /// The group says the same twice.
    Twice,
    /// The group says in Unicode what the one around it says without.
    InUnicode,
    /// The group is what stands in a box, and text, though the one around it is not.
    Box,
    /// The group is a footnote or an endnote.
    Footnote,
    /// So many bytes follow that are no text.
    Binary,
    /// Nothing for the text.
    Nothing,
}

/// Tells what a control word means.
pub(super) fn meaning(word: &str) -> Meaning {
    match word {
        "par" | "line" | "page" | "column" | "sect" | "softline" => Meaning::Line,
        "row" | "nestrow" => Meaning::Row,
        "tab" | "cell" | "nestcell" => Meaning::Character('\t'),
        "emspace" | "enspace" | "qmspace" => Meaning::Character(' '),
        "emdash" => Meaning::Character('—'),
        "endash" => Meaning::Character('–'),
        "lquote" => Meaning::Character('‘'),
        "rquote" => Meaning::Character('’'),
        "ldblquote" => Meaning::Character('“'),
        "rdblquote" => Meaning::Character('”'),
        "bullet" => Meaning::Character('•'),
        "u" => Meaning::Unicode,
        "uc" => Meaning::StandIns,
        "ansicpg" => Meaning::CodePage,
        "mac" => Meaning::MacRoman,
        "fonttbl" => Meaning::Fonts,
        "f" => Meaning::Font,
        "deff" => Meaning::DefaultFont,
        "fcharset" => Meaning::FontCharset,
        "cpg" => Meaning::FontCodePage,
        "v" => Meaning::Hidden,
        "deleted" => Meaning::Deleted,
        "plain" => Meaning::Plain,
        "footnote" => Meaning::Footnote,
        "upr" => Meaning::Twice,
        "ud" => Meaning::InUnicode,
        "shptxt" => Meaning::Box,
        "bin" => Meaning::Binary,
        "colortbl" | "stylesheet" | "info" | "pict" | "header" | "headerl" | "headerr" | "headerf"
        | "footer" | "footerl" | "footerr" | "footerf" | "fldinst" | "filetbl" | "listtable"
        | "listoverridetable" | "revtbl" | "ftnsep" | "ftnsepc" | "ftncn" | "aftnsep" | "aftnsepc"
        | "aftncn" | "xe" | "tc" | "rxe" | "txe" | "private" | "template" | "operator" | "shprslt" | "sp"
        | "nonshppict" | "nesttableprops" | "nonesttables" | "themedata" | "objdata" | "objclass"
        | "objname" | "datafield" | "annotation" | "atnid" | "atnauthor" | "bkmkstart" | "bkmkend" => {
            Meaning::NoText
        }
        _ => Meaning::Nothing,
    }
}
