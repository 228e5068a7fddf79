//! Reads a whole text as a sequence of calls in any form.

use super::cursor::Cursor;
use super::harmony::{self, Message};
use super::stop::{Broken, Stop, When};
use super::tokens::{self, Token};
use super::tools::{Context, Tools};
use super::{Spoken, SpokenCall};
use super::{begun, lenient, named, python, react, shape, xml};

/// Reads calls up to the end of the text. A form is a way of writing calls, such as JSON or XML tags. At each position
/// in the text, the reader tries each form at most once. So the work grows only linearly with the length of the text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    cursor: Cursor<'a>,
    tools: Tools<'a>,
    is_tagged: bool,
    is_after_prose: bool,
    calls: Vec<SpokenCall>,
    /// The first broken call. If the rest of the text shows that the model meant no call, the broken call does not
    /// count.
    broken: Option<Broken>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, tools: Tools<'a>) -> Self {
        Self {
            cursor: Cursor::new(text),
            tools,
            is_tagged: false,
            is_after_prose: false,
            calls: Vec::new(),
            broken: None,
        }
    }

    /// Makes the reader stricter. Call this if prose before the text was skipped.
    pub(super) fn after_prose(self) -> Self {
        Self { is_after_prose: true, ..self }
    }

    /// Reads the text. The second value of the result is true if the text begins with calls. Prose may follow these
    /// calls.
    pub(super) fn run(mut self) -> (Spoken, bool) {
        loop {
            self.skip_tokens();
            if self.cursor.is_at_end() {
                break;
            }
            match self.form() {
                Ok(calls) => self.calls.extend(calls),
                Err(Stop::Broken(broken, When::NothingElseFollows)) => {
                    self.broken.get_or_insert(broken);
                }
                Err(stop) => {
                    let has_calls = self.has_calls();
                    return (self.judge(stop), has_calls);
                }
            }
        }
        let has_calls = self.has_calls();
        (self.finish(), has_calls)
    }

    fn has_calls(&self) -> bool {
        !self.calls.is_empty() || self.broken.is_some()
    }

    /// Returns the result after the whole text has been read.
    fn finish(self) -> Spoken {
        if let Some(broken) = self.broken {
            return spoken(broken);
        }
        if !self.calls.is_empty() {
            return Spoken::Calls(self.calls);
        }
        if self.is_tagged && !self.is_after_prose {
            return spoken(Broken { tool: None, problem: "The call is empty.".to_owned() });
        }
        Spoken::Text
    }

    /// Decides whether the whole text is a broken call or an ordinary text. `stop` tells why a part of the text could
    /// not be read as a call.
    fn judge(&self, stop: Stop) -> Spoken {
        let is_doubtful = self.is_after_prose || !self.calls.is_empty();
        match stop {
            Stop::Broken(broken, When::Always) => spoken(broken),
            Stop::Broken(broken, _) if self.ends_like_call() => {
                if self.is_after_prose && broken.tool.is_none() {
                    return Spoken::Text;
                }
                spoken(broken)
            }
            Stop::Text if self.is_tagged && !is_doubtful && self.ends_like_call() => {
                let problem = "The tag of a tool call holds no call.".to_owned();
                spoken(Broken { tool: None, problem })
            }
            Stop::Text | Stop::Broken(_, _) => Spoken::Text,
        }
    }

    fn ends_like_call(&self) -> bool {
        let rest = tokens::without_ends(self.cursor.rest());
        rest.is_empty() || rest.ends_with(['}', ']', '>']) || rest.ends_with("```")
    }

    fn skip_tokens(&mut self) {
        let is_between = self.has_calls();
        loop {
            self.cursor.skip_blanks();
            match tokens::skip(&mut self.cursor, is_between) {
                Some(Token::Opener) => self.is_tagged = true,
                Some(Token::Other) => {}
                None => return,
            }
        }
    }

    /// Reads the next calls, which may be written in any form that this crate knows, and moves past them.
    fn form(&mut self) -> Result<Vec<SpokenCall>, Stop> {
        if harmony::begins(&self.cursor) {
            return self.harmony();
        }
        if self.cursor.starts_with(react::ACTION) {
            let context = self.context();
            return react::call(&mut self.cursor, context).map(|call| call.into_iter().collect());
        }
        if !self.has_calls() && react::skip_thought(&mut self.cursor) {
            return Ok(Vec::new());
        }
        self.is_tagged |= xml::begins_tag_form(self.cursor);
        let context = self.context();
        match self.cursor.peek() {
            Some('<') => xml::calls(&mut self.cursor, context),
            Some('[') if python::begins_list(self.cursor) => python::calls(&mut self.cursor, context),
            Some('{' | '[') => self.json(),
            _ if python::begins_call(self.cursor) => python::calls(&mut self.cursor, context),
            _ => named::call(&mut self.cursor, context).map(|call| vec![call]),
        }
    }

    fn context(&self) -> Context<'a> {
        Context { tools: self.tools, is_tagged: self.is_tagged }
    }

    fn harmony(&mut self) -> Result<Vec<SpokenCall>, Stop> {
        let context = self.context();
        match harmony::message(&mut self.cursor, context)? {
            Message::Call(call) => Ok(vec![call]),
            Message::Preamble => {
                self.is_after_prose = true;
                Ok(Vec::new())
            }
        }
    }

    fn json(&mut self) -> Result<Vec<SpokenCall>, Stop> {
        let (start, context) = (self.cursor, self.context());
        match lenient::value(&mut self.cursor) {
            Ok(value) => shape::calls(value, context).map_err(|stop| match stop {
                Stop::Text if self.is_tagged => shape::without_name(),
                stop => stop,
            }),
            Err(fault) => match begun::tool(start.rest(), context) {
                Some(tool) => Err(Stop::fault(Some(&tool), &fault)),
                None if self.is_tagged => Err(Stop::fault(None, &fault)),
                None => Err(Stop::Text),
            },
        }
    }
}

fn spoken(broken: Broken) -> Spoken {
    Spoken::Broken { tool: broken.tool, problem: broken.problem }
}
