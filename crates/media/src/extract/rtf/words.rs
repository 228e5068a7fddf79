//! The meaning of RTF's control words for the text.

/// The meaning of a control word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It stands for this character.
    Character(char),
    /// It ends a line.
    Line,
    /// It ends a row of a table.
    Row,
    /// Its number is a unit of UTF-16.
    Unicode,
    /// Its number is the count of substitute characters after each unit of UTF-16, for readers without Unicode.
    StandIns,
    /// Its number is the code page of the document.
    CodePage,
    /// The document has the encoding of old Macintosh computers.
    MacRoman,
    /// The group is the list of fonts.
    Fonts,
    /// Its number selects the font.
    Font,
    /// Its number is the font of text that selects none.
    DefaultFont,
    /// Its number is the character set of the current font in the list of fonts.
    FontCharset,
    /// Its number is the code page of the current font in the list of fonts.
    FontCodePage,
    /// Hides the text after it, or shows it again if its number is 0.
    Hidden,
    /// Marks the text after it as deleted by a tracked change, or as not deleted if its number is 0.
    Deleted,
    /// Resets the text after it to the default formatting.
    Plain,
    /// The group is not text.
    NoText,
    /// The group holds the same text twice.
    Twice,
    /// The group repeats in Unicode the text of the group around it.
    InUnicode,
    /// The group is the text in a box, although the group around it is not text.
    Box,
    /// The group is a footnote or an endnote.
    Footnote,
    /// Its number is the count of bytes after it that are not text.
    Binary,
    /// It has no meaning for the text.
    Nothing,
}

/// Returns the meaning of a control word.
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
