"""String diagrams of linear maps, terms and programs: wires are index sets, boxes are arrays."""
