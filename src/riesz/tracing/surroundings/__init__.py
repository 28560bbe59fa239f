"""What a function finds outside of itself: names, arrays, and whether they are still what they were."""
