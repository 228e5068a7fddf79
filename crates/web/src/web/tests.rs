mod bodies;
mod places;
mod slow;
