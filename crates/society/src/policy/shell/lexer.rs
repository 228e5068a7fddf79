//! Splits the text of a shell command into words, operators and redirections.

use super::ansi;
use super::cursor::Cursor;
use super::scan::{Uncertain, arithmetic};
use super::token::{Expansions, Lexed, Token};
use super::word::{Braces, Piece, Word, names_descriptor, plain_brackets};

/// Maximum length of a text, in characters. A longer text counts as uncertain.
const LONGEST: usize = 64 * 1024;

/// Maximum nesting of substitutions, such as `$(a $(b))`. A text that nests deeper counts as uncertain.
const DEEPEST: usize = 20;

/// Reads a text. Returns `None` if the text is incomplete or too long, or if shells may read it in different ways. Notes
/// in `expansions` what the shell expands in the text. If the result is `None`, only the part of the text before the
/// uncertain place is noted.
pub(super) fn lex(text: &str, expansions: &mut Expansions) -> Option<Lexed> {
    lex_at(text, 0, expansions)
}

fn lex_at(text: &str, depth: usize, expansions: &mut Expansions) -> Option<Lexed> {
    let text: Vec<char> = text.chars().collect();
    if text.len() > LONGEST || text.contains(&'\0') {
        return None;
    }
    let mut lexer = Lexer { cursor: Cursor::new(text), depth, nested: Vec::new(), expansions };
    let tokens = lexer.commands(End::OfText)?;
    Some(Lexed { tokens, nested: lexer.nested })
}

/// Where a list of commands ends: at the end of the text, or at the `)` of a substitution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    OfText,
    Parenthesis,
}

/// A here-document whose lines follow the current line.
struct HereDocument {
    delimiter: String,
    expands: bool,
    strips_tabs: bool,
}

struct Lexer<'a> {
    cursor: Cursor,
    depth: usize,
    nested: Vec<Lexed>,
    expansions: &'a mut Expansions,
}

impl Lexer<'_> {
    fn commands(&mut self, end: End) -> Option<Vec<Token>> {
        let mut tokens = Vec::new();
        let mut pending: Vec<HereDocument> = Vec::new();
        let mut open = 0_usize;
        loop {
            match self.cursor.peek() {
                None if end == End::OfText => return Some(tokens),
                None => return None,
                Some(' ' | '\t') => self.cursor.advance(1),
                Some('#') => self.cursor.comment(),
                Some('\n') => {
                    self.cursor.advance(1);
                    tokens.push(Token::Operator);
                    for document in pending.drain(..) {
                        self.here_document(&document)?;
                    }
                }
                Some('(') => {
                    self.cursor.advance(1);
                    tokens.push(Token::Operator);
                    if !(self.cursor.peek() == Some('(') && self.arithmetic()?) {
                        open += 1;
                    }
                }
                Some(')') => {
                    self.cursor.advance(1);
                    if open == 0 && end == End::Parenthesis {
                        // If a here-document begins before this `)`, its lines come after the `)`. Shells differ in how
                        // they read such lines, so the text counts as uncertain.
                        return pending.is_empty().then_some(tokens);
                    }
                    open = open.saturating_sub(1);
                    tokens.push(Token::Operator);
                }
                Some('&') => {
                    self.cursor.advance(1);
                    if self.cursor.peek() == Some('>') {
                        pending.extend(self.redirection()?);
                        tokens.push(Token::Redirection);
                    } else {
                        tokens.push(Token::Operator);
                    }
                }
                Some(';' | '|') => {
                    self.cursor.advance(1);
                    tokens.push(Token::Operator);
                }
                Some('<' | '>') if self.cursor.rest().get(1) != Some(&'(') => {
                    pending.extend(self.redirection()?);
                    tokens.push(Token::Redirection);
                }
                Some(_) => {
                    let from = self.cursor.place();
                    let word = self.word()?;
                    if end == End::Parenthesis && word.exact().as_deref() == Some("case") {
                        // The lexer would mistake the `)` behind a pattern of `case` for the end of the substitution.
                        // So the text counts as uncertain.
                        return None;
                    }
                    let is_redirected = matches!(self.cursor.peek(), Some('<' | '>'));
                    let is_descriptor = is_redirected && names_descriptor(self.cursor.since(from));
                    if !is_descriptor {
                        tokens.push(Token::Word(word));
                    }
                }
            }
        }
    }

    /// Reads a redirection and its target. Returns the here-document that the redirection begins, if any.
    fn redirection(&mut self) -> Option<Option<HereDocument>> {
        let begins_document = self.cursor.skip('<') && self.cursor.skip('<');
        if begins_document && !self.cursor.skip('<') {
            let strips_tabs = self.cursor.skip('-');
            self.cursor.blanks();
            let from = self.cursor.place();
            let delimiter = self.word()?.exact()?;
            let written = self.cursor.since(from);
            if written.is_empty() {
                return None;
            }
            let expands = !written.iter().any(|character| matches!(character, '\'' | '"' | '\\' | '$' | '`'));
            return Some(Some(HereDocument { delimiter, expands, strips_tabs }));
        }
        while matches!(self.cursor.peek(), Some('<' | '>' | '&' | '|')) {
            self.cursor.advance(1);
        }
        self.cursor.blanks();
        if matches!(self.cursor.peek(), Some('<' | '>')) {
            // The target is a process substitution, such as in `< <(command)`.
            self.word()?;
        } else if !matches!(self.cursor.peek(), None | Some('\n' | ';' | '(' | ')')) {
            self.word()?;
        }
        Some(None)
    }

    fn here_document(&mut self, document: &HereDocument) -> Option<()> {
        let mut body = String::new();
        while !self.cursor.rest().is_empty() {
            let line: String = self.cursor.rest().iter().take_while(|next| **next != '\n').collect();
            self.cursor.advance(line.chars().count() + 1);
            let bare = if document.strips_tabs { line.trim_start_matches('\t') } else { &line };
            if bare == document.delimiter {
                break;
            }
            if document.expands && line.ends_with('\\') {
                // The shell joins this line with the next, which may hide the delimiter from the search above. So the
                // text counts as uncertain.
                return None;
            }
            body.push_str(&line);
            body.push('\n');
        }
        if document.expands {
            self.substitutions(&body)?;
        }
        Some(())
    }

    /// Finds the commands in the substitutions of a text that is otherwise data, such as a here-document.
    fn substitutions(&mut self, text: &str) -> Option<()> {
        // In data, quotation marks have no meaning, so the loop looks only for `$`, backquotes and backslashes.
        let text: Vec<char> = text.chars().collect();
        let mut inner = Lexer {
            cursor: Cursor::new(text),
            depth: self.depth,
            nested: Vec::new(),
            expansions: &mut *self.expansions,
        };
        let mut word = Word::default();
        while let Some(next) = inner.cursor.raw() {
            match next {
                '\\' => drop(inner.cursor.raw()),
                '$' => inner.dollar(&mut word, Quotes::Double)?,
                '`' => inner.backquotes(Quotes::None)?,
                _ => {}
            }
        }
        self.nested.append(&mut inner.nested);
        Some(())
    }

    /// The cursor is between two opening parentheses. Returns whether they begin an arithmetic expression, as in
    /// `((1+2))`, or `None` if this is not certain. If they do, skips the rest of the expression.
    fn arithmetic(&mut self) -> Option<bool> {
        let text = self.cursor.rest().get(1..)?;
        match arithmetic(text) {
            Ok(Some(length)) => {
                let expression: String = text.iter().take(length).collect();
                // Skip one parenthesis before the expression, and two behind it.
                self.cursor.advance(length + 3);
                self.substitutions(&expression)?;
                Some(true)
            }
            Ok(None) => Some(false),
            Err(Uncertain) => None,
        }
    }
}

/// The quotes around a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

impl Lexer<'_> {
    fn word(&mut self) -> Option<Word> {
        let mut word = Word::default();
        let mut braces = Braces::default();
        let from = self.cursor.place();
        while let Some(next) = self.cursor.peek() {
            match next {
                '<' | '>' if self.cursor.place() == from && self.cursor.rest().get(1) == Some(&'(') => {
                    self.cursor.advance(2);
                    self.substitution()?;
                    word.0.push(Piece::Any);
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.cursor.advance(1);
                    word.0.push(Piece::Char(self.cursor.raw().unwrap_or('\\')));
                }
                '\'' => {
                    self.cursor.advance(1);
                    self.single_quotes(&mut word)?;
                }
                '"' => {
                    self.cursor.advance(1);
                    self.double_quotes(&mut word)?;
                }
                '$' => {
                    self.cursor.advance(1);
                    self.dollar(&mut word, Quotes::None)?;
                }
                '`' => {
                    self.cursor.advance(1);
                    self.backquotes(Quotes::None)?;
                    word.0.push(Piece::Any);
                }
                '*' | '?' | '[' => {
                    self.cursor.advance(1);
                    word.0.push(Piece::Glob(next));
                }
                '~' if word.0.is_empty() => {
                    self.cursor.advance(1);
                    word.0.push(Piece::Glob(next));
                }
                _ => {
                    self.cursor.advance(1);
                    braces.see(next);
                    word.0.push(Piece::Char(next));
                }
            }
        }
        if braces == Braces::Closed {
            return Some(Word(vec![Piece::Any]));
        }
        plain_brackets(&mut word);
        Some(word)
    }

    fn single_quotes(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.cursor.raw()? {
                '\'' => return Some(()),
                character => word.0.push(Piece::Char(character)),
            }
        }
    }

    fn double_quotes(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.cursor.next()? {
                '"' => return Some(()),
                '\\' => match self.cursor.raw()? {
                    escaped @ ('$' | '`' | '"' | '\\') => word.0.push(Piece::Char(escaped)),
                    other => word.0.extend([Piece::Char('\\'), Piece::Char(other)]),
                },
                '$' => self.dollar(word, Quotes::Double)?,
                '`' => {
                    self.backquotes(Quotes::Double)?;
                    word.0.push(Piece::Any);
                }
                character => word.0.push(Piece::Char(character)),
            }
        }
    }

    /// Reads what follows a dollar sign, such as `x`, `{x}`, `(command)` or a quotation.
    fn dollar(&mut self, word: &mut Word, quotes: Quotes) -> Option<()> {
        match self.cursor.peek() {
            Some('(') => {
                self.cursor.advance(1);
                if self.cursor.peek() == Some('(') && self.arithmetic()? {
                    self.expansions.other = true;
                } else {
                    self.expansions.substitution = true;
                    self.substitution()?;
                }
                word.0.push(Piece::Any);
            }
            Some('{') => {
                self.expansions.other = true;
                self.cursor.advance(1);
                self.parameter()?;
                word.0.push(Piece::Any);
            }
            Some('\'') if quotes == Quotes::None => {
                self.cursor.advance(1);
                self.ansi_quotes(word)?;
            }
            Some('"') if quotes == Quotes::None => {
                self.cursor.advance(1);
                self.double_quotes(word)?;
            }
            // `$[…]` is an old form of arithmetic. Not every shell has this form, so the text counts as uncertain.
            Some('[') => {
                self.expansions.other = true;
                return None;
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                self.expansions.other = true;
                while self.cursor.peek().is_some_and(|next| next.is_ascii_alphanumeric() || next == '_') {
                    self.cursor.advance(1);
                }
                word.0.push(Piece::Any);
            }
            Some('0'..='9' | '@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                self.expansions.other = true;
                self.cursor.advance(1);
                word.0.push(Piece::Any);
            }
            Some(_) | None => word.0.push(Piece::Char('$')),
        }
        Some(())
    }

    fn ansi_quotes(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.cursor.raw()? {
                '\'' => return Some(()),
                '\\' => {
                    let (piece, length) = ansi::escape(self.cursor.rest());
                    self.cursor.advance(length);
                    word.0.push(piece);
                }
                character => word.0.push(Piece::Char(character)),
            }
        }
    }

    /// Reads the commands of a substitution up to its `)`. The cursor is behind the `(`.
    fn substitution(&mut self) -> Option<()> {
        if self.depth >= DEEPEST {
            return None;
        }
        let outer = std::mem::take(&mut self.nested);
        self.depth += 1;
        let tokens = self.commands(End::Parenthesis)?;
        self.depth -= 1;
        let nested = std::mem::replace(&mut self.nested, outer);
        self.nested.push(Lexed { tokens, nested });
        Some(())
    }

    fn backquotes(&mut self, quotes: Quotes) -> Option<()> {
        self.expansions.backquotes = true;
        let mut inside = String::new();
        loop {
            match self.cursor.raw()? {
                '`' => break,
                '\\' => match self.cursor.raw()? {
                    escaped @ ('`' | '\\' | '$') => inside.push(escaped),
                    '"' if quotes == Quotes::Double => inside.push('"'),
                    other => inside.extend(['\\', other]),
                },
                character => inside.push(character),
            }
        }
        if self.depth >= DEEPEST {
            return None;
        }
        self.nested.push(lex_at(&inside, self.depth + 1, self.expansions)?);
        Some(())
    }

    /// Reads the rest of `${…}`. The cursor is behind the `{`.
    fn parameter(&mut self) -> Option<()> {
        if self.depth >= DEEPEST || matches!(self.cursor.peek(), None | Some(' ' | '\t' | '\n' | '|')) {
            // Recent shells run a command in `${ … }`, older shells do not. So the text counts as uncertain.
            return None;
        }
        self.depth += 1;
        let mut word = Word::default();
        loop {
            match self.cursor.next()? {
                '}' => break,
                '\\' => drop(self.cursor.raw()?),
                // The kind of expansion and the quotes around it decide whether a `'` begins a quotation here. The
                // lexer examines neither, so the text counts as uncertain.
                '\'' => return None,
                '"' => self.double_quotes(&mut word)?,
                '$' => self.dollar(&mut word, Quotes::Double)?,
                '`' => self.backquotes(Quotes::None)?,
                '<' | '>' if self.cursor.peek() == Some('(') => return None,
                _ => {}
            }
        }
        self.depth -= 1;
        Some(())
    }
}
