"""A step of heat conduction, solved subdomain by subdomain while the mesh is being cut."""
