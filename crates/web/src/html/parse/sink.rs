//! Builds the tree of the library `dom_query`. Also counts the nodes of the tree, because the tree itself cannot report
//! how many nodes it has.

use std::borrow::Cow;
use std::cell::{Cell, Ref};

use dom_query::{Document, NodeId};
use html5ever::tendril::StrTendril;
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, QualName};

#[derive(Default)]
pub(super) struct Counted {
    document: Document,
    nodes: Cell<usize>,
}

impl Counted {
    pub(super) fn nodes(&self) -> usize {
        self.nodes.get()
    }

    fn count(&self) {
        self.nodes.set(self.nodes.get() + 1);
    }

    fn count_text(&self, child: &NodeOrText<NodeId>) {
        match child {
            NodeOrText::AppendText(_) => self.count(),
            NodeOrText::AppendNode(_) => {}
        }
    }
}

impl TreeSink for Counted {
    type ElemName<'a> = Ref<'a, QualName>;
    type Output = Document;
    type Handle = NodeId;

    fn finish(self) -> Document {
        self.document
    }

    fn parse_error(&self, _message: Cow<'static, str>) {
        // Do not store errors: nobody reads them, and a hostile page can cause millions of errors.
    }

    fn get_document(&self) -> NodeId {
        self.document.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        self.document.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.count();
        self.document.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.count();
        self.document.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.count();
        self.document.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.count_text(&child);
        self.document.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, previous: &NodeId, child: NodeOrText<NodeId>) {
        self.count_text(&child);
        self.document.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.count();
        self.document.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.document.get_template_contents(target)
    }

    fn same_node(&self, one: &NodeId, other: &NodeId) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.document.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.count_text(&child);
        self.document.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.document.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        TreeSink::remove_from_parent(&self.document, target);
    }

    fn reparent_children(&self, node: &NodeId, parent: &NodeId) {
        TreeSink::reparent_children(&self.document, node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        self.document.is_mathml_annotation_xml_integration_point(handle)
    }
}
